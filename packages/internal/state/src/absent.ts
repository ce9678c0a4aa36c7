import type { DiskBlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'

/** What the store lacks of blobs of known sizes. */
export interface AbsentBlobs {
  /** In their order, without duplicates. */
  readonly digests: readonly Sha256Digest[]
  /** Bytes still missing: those that earlier attempts brought count as present. */
  readonly bytes: number
}

export async function absentBlobs(
  store: Pick<DiskBlobStore, 'stat'> & Partial<Pick<DiskBlobStore, 'partialStatus'>>,
  sizes: ReadonlyMap<Sha256Digest, number>
): Promise<AbsentBlobs> {
  const digests: Sha256Digest[] = []
  let bytes = 0
  for (const [digest, size] of sizes) {
    if ((await store.stat(digest))?.sizeBytes === size) continue
    digests.push(digest)
    bytes += Math.max(0, size - (store.partialStatus?.(digest)?.writtenBytes ?? 0))
  }
  return { digests, bytes }
}
