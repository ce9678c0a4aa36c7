import { ClassifyError, type FileSelection, globTest, type OwnersChoice, RAW } from '@svc/classify'
import type { ImportChoice } from '@svc/internal-models'
import { LibraryError } from '@svc/internal-state'

/**
 * Which artifacts an import may replace under its name: any (`true`, the default), none, or only those from the same
 * repository of the hub, so that a newer commit can replace an older one (spec add.45).
 */
export type MayReplace = boolean | 'same-repository'

/** Which files of a source make up an import, as recognition sees their names. */
export interface SourceSelection extends FileSelection {
  readonly normalizedNames: boolean
  /** Every file is taken as it is (spec rec.32), pickles only if the owner says so. */
  readonly opaque?: { readonly allowsPickles: boolean } | undefined
}

/** What the caller selects for an import (spec add.1, add.6, add.10), validated. */
export interface ImportSelection extends SourceSelection {
  readonly private: boolean
  readonly mayReplace: MayReplace
  /** What the name stands for now gets a tag if it changes. */
  readonly keepBefore: boolean
  /** Weights that no runtime can load end the import. */
  readonly refusesMalformed: boolean
  /** All of it, as the request spells it, to be recorded. */
  readonly choice: OwnersChoice
  /** If it does not fit, models that can be fetched again may be evicted. */
  readonly mayEvict: boolean
}

/**
 * The selection that is asked for. Normalized names differ from the publisher's, so globs ignore case with them.
 * @throws LibraryError `E_INVALID` naming the field
 */
export function importSelectionOf(choice: ImportChoice, privateByDefault = false): ImportSelection {
  const { names, files, aux } = choice
  if (aux?.length === 0) throw invalid('the field "aux" is empty; "none" leaves all of them out')
  const anyCase = names === 'normalized'
  const opaque = opaqueOf(choice)
  const quants = quantsOf(choice)
  return {
    normalizedNames: anyCase && opaque === undefined,
    opaque,
    quants,
    files: files && testOf(files, anyCase),
    aux: aux === 'all' ? undefined : aux,
    private: choice.private ?? privateByDefault,
    mayReplace: mayReplaceOf(choice),
    keepBefore: choice.keepBefore ?? false,
    refusesMalformed: choice.malformed === 'refuse',
    choice: {
      ...(anyCase && { names }),
      ...(quants && { quants }),
      ...(files && { files }),
      ...(aux !== undefined && aux !== 'all' && { aux }),
      ...(opaque && { recognise: 'opaque', ...(opaque.allowsPickles && { allowPickle: true }) })
    },
    mayEvict: choice.evict ?? false
  }
}

/** Whether files are taken as they are (spec rec.32, rec.33). */
export const opaqueOf = ({
  recognise,
  allowPickle = false
}: Pick<ImportChoice, 'recognise' | 'allowPickle'>): ImportSelection['opaque'] =>
  recognise === 'opaque' ? { allowsPickles: allowPickle } : undefined

/** What an import may replace (spec add.45). */
export const mayReplaceOf = ({ replace }: Pick<ImportChoice, 'replace'>): MayReplace =>
  replace === false ? 'same-repository' : true

function quantsOf({ quants, recognise }: ImportChoice): readonly string[] | undefined {
  if (quants?.length === 0) throw invalid('the field "quants" is empty')
  if (recognise !== 'opaque') return quants
  if (quants?.some((quant) => quant.toLowerCase() !== RAW)) {
    const what = 'files that are imported as they are have the quant "raw"; choose with "files"'
    throw invalid(`the field "quants": ${what}`)
  }
  return undefined
}

function testOf(files: readonly string[], anyCase: boolean): (name: string) => boolean {
  if (files.length === 0) throw invalid('the field "files" is empty')
  try {
    return globTest(files, anyCase)
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    throw invalid(`the field "files": ${cause.message}`, cause)
  }
}

const invalid = (message: string, cause?: unknown): LibraryError => new LibraryError('E_INVALID', message, { cause })
