import type { ImportHfBody } from '@svc/client/protocol'
import { isRepoId, isRevision } from '@svc/hub'
import { isCommit, targetFor } from '@svc/library/parts'
import type { RepoId } from '@svc/ref'
import { DaemonError } from '../../errors.ts'

/** The namespace of repositories without an owner: no owner can be called that, since owners' names have no dot. */
const OWNERLESS = 'hf.co'

/**
 * The name for an import: `as`, else the requested id in lower case, below `hf.co` without an owner (spec hub.2).
 * That a hub redirects to another name changes nothing: it must not choose which model is changed here.
 * @throws DaemonError `E_BAD_REQUEST`
 */
export function hubTarget({ repo, revision, as, follows }: ImportHfBody): RepoId {
  if (!isRepoId(repo)) {
    throw refused('repo', `${shown(repo)} is not a repository as the hub spells it, e.g. some-org/some-model`)
  }
  if (revision !== undefined && !isRevision(revision)) {
    throw refused('revision', `${shown(revision)} is not a branch, tag or commit`)
  }
  if (follows !== undefined && !(isRevision(follows) && revision !== undefined && isCommit(revision))) {
    throw refused('follows', 'it is the branch or tag that "revision", a commit, was found at')
  }
  return targetFor({ repo: repo.includes('/') ? repo : `${OWNERLESS}/${repo}`, as })
}

/** The branch or tag that an import follows from now on; empty for the commit alone. */
export const followedBy = ({ revision = 'main', follows }: ImportHfBody): string =>
  follows ?? (isCommit(revision) ? '' : revision)

const refused = (field: string, why: string) => new DaemonError('E_BAD_REQUEST', `the field "${field}": ${why}`)
const shown = (text: string): string => JSON.stringify(text.slice(0, 200))
