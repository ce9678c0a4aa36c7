import type { BlobReader, BlobStore } from '@svc/cas'
import { MAX_DOCUMENT_BYTES } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'

/** All bytes of an open blob, whose size the caller has checked; fewer if the file was truncated in the meantime. */
export async function readWholeBlob(reader: BlobReader): Promise<Uint8Array> {
  const bytes = new Uint8Array(reader.sizeBytes)
  let filled = 0
  while (filled < bytes.length) {
    const count = await reader.read(bytes.subarray(filled), filled)
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
}

/** Reads a small blob; undefined when it is absent. @throws LibraryError `E_CORRUPTION` above `maxBytes` */
export async function readSmallBlob(
  store: Pick<BlobStore, 'stat' | 'open'>,
  digest: Sha256Digest,
  maxBytes = MAX_DOCUMENT_BYTES
): Promise<Uint8Array | undefined> {
  if ((await store.stat(digest)) === undefined) return undefined
  const reader = await store.open(digest)
  try {
    if (reader.sizeBytes > maxBytes)
      throw new LibraryError('E_CORRUPTION', `${digest} is larger than ${maxBytes} bytes`)
    const bytes = await readWholeBlob(reader)
    if (bytes.length < reader.sizeBytes) throw new LibraryError('E_CORRUPTION', `${digest} is shorter than it was`)
    return bytes
  } finally {
    await reader.close()
  }
}

/** Bytes in memory as the source of an ingest. */
export async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
