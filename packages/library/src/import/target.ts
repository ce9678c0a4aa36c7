import { LibraryError } from '@svc/internal-state'
import { isReservedNamespace, parseRepoId, type RepoId, tryParseRepoId } from '@svc/ref'

/**
 * The name to import under: `as`, else the name at the source in lower case, if that is a valid name here.
 * @throws LibraryError `E_INVALID` naming the field
 */
export function targetFor({ repo, as }: { readonly repo: string; readonly as?: string | undefined }): RepoId {
  if (as !== undefined) return importTarget(as, 'as')
  const shown = `the field "repo": ${JSON.stringify(repo.slice(0, 200))}`
  const target = tryParseRepoId(repo.toLowerCase())
  if (target === undefined) {
    const rule = 'both parts begin with a letter or digit, and have at most 64 and 128 characters'
    throw invalid(`${shown} cannot be a name here; ${rule}; set "as" to another one`)
  }
  if (!isReservedNamespace(target.ns)) return target
  throw invalid(`${shown} is in a reserved namespace; set "as" to the name to keep it under`)
}

/** The name `ns/name` to import under. @throws LibraryError `E_INVALID` naming the field */
export function importTarget(text: string, field: string): RepoId {
  let repo: RepoId
  try {
    repo = parseRepoId(text)
  } catch (cause) {
    throw invalid(`the field "${field}": ${(cause as Error).message}`, cause)
  }
  if (!isReservedNamespace(repo.ns)) return repo
  throw invalid(`the field "${field}": the namespace "${repo.ns}" is reserved; choose another one`)
}

const invalid = (message: string, cause?: unknown): LibraryError => new LibraryError('E_INVALID', message, { cause })
