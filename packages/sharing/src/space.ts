import type { DiskBlobStore } from '@svc/cas'
import { type AbsentBlobs, absentBlobs, type MakeRoom, type Room } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'

/** The files of an artifact that the store lacks. */
export const absentOf = (store: DiskBlobStore, { files }: Pick<ArtifactTorrent, 'files'>): Promise<AbsentBlobs> =>
  absentBlobs(store, new Map(files.map(({ digest, length }) => [digest, length])))

/** Whether every blob of the artifact is in the store, with the size in its manifest. */
export const isWhole = async (store: DiskBlobStore, torrent: ArtifactTorrent): Promise<boolean> =>
  (await absentOf(store, torrent)).digests.length === 0

/**
 * Refuses what does not fit before anything is fetched: a stranger's manifest may claim any sizes, and its piece
 * layers, held in memory, grow with them. @throws LibraryError `E_NO_SPACE`
 */
export async function requireSpaceFor(
  torrent: ArtifactTorrent,
  { store, room }: { readonly store: DiskBlobStore; readonly room: Pick<Room, 'require'> },
  may: MakeRoom
): Promise<void> {
  const { bytes } = await absentOf(store, torrent)
  if (bytes > 0) await room.require(bytes, may)
}
