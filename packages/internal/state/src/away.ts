import type { Sha256Digest } from '@svc/ref'
import { isEvictable } from './eviction.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'

type AwayDeps = Pick<StoreState, 'store' | 'artifacts' | 'documents'>

/** Ends that an artifact is away, if all of its weights are here. @returns whether it did */
export async function endAway(
  manifestDigest: Sha256Digest,
  { store, artifacts, documents }: AwayDeps
): Promise<boolean> {
  if ((await artifacts.ifReadable(manifestDigest))?.away !== true) return false
  const manifest = await documents.manifest(manifestDigest)
  if (manifest === undefined) return false
  const weights = manifest.files.filter(isEvictable)
  const lease = store.lease(weights.map(({ digest }) => digest))
  try {
    if (weights.some(({ digest, size }) => stampOf(store.blobPath(digest))?.size !== size)) return false
    return await artifacts.endAway(manifestDigest)
  } finally {
    lease.release()
  }
}

/** Call before bytes are removed: other imports may have brought back all weights of an artifact that is away, which then needs them. */
export async function endAwayOfAll(deps: AwayDeps, but?: Sha256Digest): Promise<void> {
  for await (const { manifestDigest, away } of deps.artifacts.list(() => undefined, { cached: true }))
    if (away === true && manifestDigest !== but) await endAway(manifestDigest, deps)
}
