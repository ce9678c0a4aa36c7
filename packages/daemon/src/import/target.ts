import { isReservedNamespace, parseRepoId, type RepoId } from '@svc/ref'
import { DaemonError } from '../errors.ts'

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
