import type { BlobStore, DiskBlobStore } from '@svc/cas'
import type { ArtifactTorrent } from '@svc/manifest'
import type { MakeRoom, Room } from '../jobs/room.ts'

/** Whether every blob of the artifact is in the store, with the size in its manifest. */
export async function isWhole(store: BlobStore, torrent: ArtifactTorrent): Promise<boolean> {
  for (const { digest, length } of torrent.files) {
    if ((await store.stat(digest))?.sizeBytes !== length) return false
  }
  return true
}

/**
 * Refuses an artifact that does not fit before anything is fetched: a stranger's manifest may claim any sizes, and
 * already its piece layers, which are held in memory, grow with them.
 * @throws DaemonError `E_NO_SPACE`
 */
export async function requireSpaceFor(
  torrent: ArtifactTorrent,
  { store, room }: { readonly store: DiskBlobStore; readonly room: Pick<Room, 'require'> },
  may: MakeRoom
): Promise<void> {
  const sizes = new Map(torrent.files.map(({ digest, length }) => [digest, length]))
  let needed = 0
  for (const [digest, length] of sizes)
    if ((await store.stat(digest))?.sizeBytes !== length)
      needed += length - (store.partialStatus(digest)?.writtenBytes ?? 0)
  if (needed > 0) await room.require(needed, may)
}
