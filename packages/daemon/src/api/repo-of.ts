import { type RepoId, tryParseRepoId } from '@svc/ref'
import { DaemonError } from '../errors.ts'

/** The repository that the parameters of a path name. @throws DaemonError `E_BAD_REQUEST` */
export function repoOf({ ns, name }: RepoId): RepoId {
  const repo = tryParseRepoId(`${ns}/${name}`)
  if (repo !== undefined) return repo
  const shown = JSON.stringify(`${ns}/${name}`.slice(0, 200))
  throw new DaemonError('E_BAD_REQUEST', `${shown} is not the name of a model; write ns/name in lower case`)
}
