import { ClassifyError, globTest } from '@svc/classify'
import type { ImportHfBody, ImportLocalBody } from '@svc/client/protocol'
import type { ImportSelection, MayReplace } from '@svc/library/parts'
import { isReservedNamespace, parseRepoId, type RepoId, tryParseRepoId } from '@svc/ref'
import { DaemonError } from './errors.ts'

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
  }: Pick<ImportLocalBody, 'names' | 'quants' | 'files' | 'aux' | 'private' | 'replace' | 'evict' | 'malformed'> &
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
    refusesMalformed: body.malformed === 'refuse',
    choice: {
      ...(normalizedNames && { names }),
      ...(quants && { quants }),
      ...(files && { files }),
      ...(aux !== undefined && aux !== 'all' && { aux })
    },
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

/**
 * The repository to import into: `as`, else the name at the source in lower case, if that is a valid name here.
 * @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export function targetFor({ repo, as }: { readonly repo: string; readonly as?: string | undefined }): RepoId {
  if (as !== undefined) return importTarget(as, 'as')
  const shown = `the field "repo": ${JSON.stringify(repo.slice(0, 200))}`
  const target = tryParseRepoId(repo.toLowerCase())
  if (target === undefined) {
    const rule = 'both parts begin with a letter or digit, and have at most 64 and 128 characters'
    throw new DaemonError('E_BAD_REQUEST', `${shown} cannot be a name here; ${rule}; set "as" to another one`)
  }
  if (!isReservedNamespace(target.ns)) return target
  throw new DaemonError('E_BAD_REQUEST', `${shown} is in a reserved namespace; set "as" to the name to keep it under`)
}

/** The repository `ns/name` to import into, from a request. @throws DaemonError `E_BAD_REQUEST` naming the field */
export function importTarget(text: string, field: string): RepoId {
  let repo: RepoId
  try {
    repo = parseRepoId(text)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the field "${field}": ${(cause as Error).message}`, { cause })
  }
  if (!isReservedNamespace(repo.ns)) return repo
  throw new DaemonError(
    'E_BAD_REQUEST',
    `the field "${field}": the namespace "${repo.ns}" is reserved; choose another one`
  )
}
