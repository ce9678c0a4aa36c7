import { ClassifyError, type FileSelection, globTest } from '@svc/classify'
import type { ImportHfBody, ImportLocalBody } from '@svc/client/protocol'
import { DaemonError } from '../errors.ts'

/**
 * Which artifacts an import may replace under its name: any (`true`, the default), none, or only those from the same
 * repository of the hub, so that a newer commit can replace an older one (spec add.45).
 */
export type MayReplace = boolean | 'same-repository'

/** Which files of a source make up an import, as recognition sees their names. */
export interface SourceSelection extends FileSelection {
  readonly normalizedNames: boolean
}

/** What the caller selects for an import (spec add.1, add.6, add.10), validated. */
export interface ImportSelection extends SourceSelection {
  readonly private: boolean
  readonly mayReplace: MayReplace
  /** What the name stands for now gets a tag if it changes. */
  readonly keepBefore: boolean
  /** If it does not fit, models that can be fetched again may be evicted. */
  readonly mayEvict: boolean
}

/**
 * The selection in a request body that matches its schema. Normalized names differ from the publisher's, so globs ignore
 * case with them. @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export function importSelectionOf(
  {
    names,
    quants,
    files,
    aux,
    ...body
  }: Pick<ImportLocalBody, 'names' | 'quants' | 'files' | 'aux' | 'private' | 'replace' | 'evict'> &
    Pick<ImportHfBody, 'keepBefore'>,
  privateByDefault = false
): ImportSelection {
  const normalizedNames = names === 'normalized'
  if (quants?.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "quants" is empty')
  if (aux?.length === 0)
    throw new DaemonError('E_BAD_REQUEST', 'the field "aux" is empty; "none" leaves all of them out')
  return {
    normalizedNames,
    quants,
    files: files && testOf(files, normalizedNames),
    aux: aux === 'all' ? undefined : aux,
    private: body.private ?? privateByDefault,
    mayReplace: mayReplaceOf(body),
    keepBefore: body.keepBefore ?? false,
    mayEvict: body.evict ?? false
  }
}

/** The field `replace` of a request (spec add.45). */
export const mayReplaceOf = ({ replace }: Pick<ImportLocalBody, 'replace'>): MayReplace =>
  replace === false ? 'same-repository' : true

function testOf(files: readonly string[], anyCase: boolean): (name: string) => boolean {
  if (files.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "files" is empty')
  try {
    return globTest(files, anyCase)
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    throw new DaemonError('E_BAD_REQUEST', `the field "files": ${cause.message}`, { cause })
  }
}
