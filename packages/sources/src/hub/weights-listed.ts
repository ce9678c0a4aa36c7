import type { DiskBlobStore } from '@svc/cas'
import { type HubListing, isRepoId, isRevision } from '@svc/hub'
import { isEvictable, LibraryError } from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { gitSha1Of } from './listed-bytes.ts'

/** A repository of the hub at a commit, as a manifest names it. */
export interface HubCommit {
  readonly repo: string
  readonly revision: string
}

/** Where a manifest says that it comes from. @throws LibraryError `E_SOURCE_UNAVAILABLE` where it names no repository and commit */
export function hubOriginOf({ annotations }: Pick<Manifest, 'annotations'>, ref: string): HubCommit {
  const { 'svc.hf.repo': repo, 'svc.hf.revision': revision } = annotations
  if (repo !== undefined && isRepoId(repo) && revision !== undefined && isRevision(revision)) return { repo, revision }
  throw new LibraryError(
    'E_SOURCE_UNAVAILABLE',
    `${ref} did not come from the hub: import it again from its source, together with the files beside it`
  )
}

/**
 * Anyone can write the name of a repository into a manifest: its companions belong only to artifacts whose weights it
 * lists.
 * @throws LibraryError `E_NOT_IMPORTABLE` if the hub lists others at that commit
 */
export async function requireWeightsOf(
  manifest: Pick<Manifest, 'files'>,
  { commit, files }: Pick<HubListing, 'commit' | 'files'>,
  { repo, revision }: HubCommit,
  store: DiskBlobStore
): Promise<void> {
  const listed = new Set(files.map(({ sha256, gitBlobSha1 }) => sha256 ?? gitBlobSha1))
  const weights = manifest.files.filter(isEvictable)
  let isListed = commit === revision && weights.length > 0
  for (const { digest, size } of weights)
    isListed &&= listed.has(digest) || listed.has((await gitSha1Of(store, digest, size)) ?? '')
  if (isListed) return
  throw new LibraryError('E_NOT_IMPORTABLE', `${repo} at ${revision} lists other weights than the model here has`)
}
