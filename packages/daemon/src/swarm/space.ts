import type { BlobStore, DiskBlobStore } from '@svc/cas'
import type { ArtifactTorrent } from '@svc/manifest'
import { noSpace } from '../errors.ts'

/** Every blob of the artifact is in the store, of the length that its manifest says. */
export async function isWhole(store: BlobStore, torrent: ArtifactTorrent): Promise<boolean> {
  for (const { digest, length } of torrent.files) {
    if ((await store.stat(digest))?.sizeBytes !== length) return false
  }
  return true
}

/**
 * Refuses what cannot fit before anything is fetched: a manifest of a stranger may claim any sizes, and its piece layers alone, which
 * are held in memory, grow with them.
 * @throws DaemonError `E_NO_SPACE`
 */
export async function requireSpaceFor(store: DiskBlobStore, torrent: ArtifactTorrent): Promise<void> {
  const sizes = new Map(torrent.files.map(({ digest, length }) => [digest, length]))
  let needed = 0
  for (const [digest, length] of sizes)
    if ((await store.stat(digest))?.sizeBytes !== length) needed += length - store.partialBytes(digest)
  if (needed === 0) return
  const free = await store.freeBytes()
  if (needed <= free) return
  throw noSpace(needed, free)
}
