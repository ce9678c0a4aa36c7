import { isRepoId, isRevision } from '@svc/hub'
import { isCommit, LibraryError, targetFor } from '@svc/library/parts'
import type { RepoId } from '@svc/ref'

/** A repository of the hub, as it is asked for. */
export interface AskedRepo {
  /** `org/name`, or `name` for one without an owner. */
  readonly repo: string
  /** A branch, tag or commit; default: the default branch. */
  readonly revision?: string
  /** The branch or tag at which `revision`, a commit, was found. */
  readonly follows?: string
  /** The name to import under. */
  readonly as?: string
}

/** The namespace of repositories without an owner: no owner can be called that, since owners' names have no dot. */
const OWNERLESS = 'hf.co'

/**
 * The name for an import: `as`, else the requested id in lower case, below `hf.co` without an owner (spec hub.2).
 * That a hub redirects to another name changes nothing: it must not choose which model is changed here.
 * @throws LibraryError `E_INVALID`
 */
export function hubTarget(request: AskedRepo): RepoId {
  requireAskedRepo(request)
  const { repo, as } = request
  return targetFor({ repo: repo.includes('/') ? repo : `${OWNERLESS}/${repo}`, as })
}

/** @throws LibraryError `E_INVALID` */
export function requireAskedRepo({ repo, revision, follows }: AskedRepo): void {
  if (!isRepoId(repo)) {
    throw refused('repo', `${shown(repo)} is not a repository as the hub spells it, e.g. some-org/some-model`)
  }
  if (revision !== undefined && !isRevision(revision)) {
    throw refused('revision', `${shown(revision)} is not a branch, tag or commit`)
  }
  if (follows !== undefined && !(isRevision(follows) && revision !== undefined && isCommit(revision))) {
    throw refused('follows', 'it is the branch or tag that "revision", a commit, was found at')
  }
}

/** The branch or tag that an import follows from now on; empty for the commit alone. */
export const followedBy = ({ revision = 'main', follows }: AskedRepo): string =>
  follows ?? (isCommit(revision) ? '' : revision)

const refused = (field: string, why: string) => new LibraryError('E_INVALID', `the field "${field}": ${why}`)
const shown = (text: string): string => JSON.stringify(text.slice(0, 200))
