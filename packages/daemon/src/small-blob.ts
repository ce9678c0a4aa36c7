import type { BlobStore } from '@svc/cas'
import type { Sha256Digest } from '@svc/ref'
import { MAX_DOCUMENT_BYTES } from './documents.ts'
import { DaemonError } from './errors.ts'

/** A small blob whole; undefined when it is absent. @throws DaemonError `E_CORRUPTION` above `maxBytes` */
export async function readSmallBlob(store: BlobStore, digest: Sha256Digest, maxBytes = MAX_DOCUMENT_BYTES): Promise<Uint8Array | undefined> {
  if ((await store.stat(digest)) === undefined) return undefined
  const reader = await store.open(digest)
  try {
    if (reader.sizeBytes > maxBytes) throw new DaemonError('E_CORRUPTION', `${digest} is larger than ${maxBytes} bytes`)
    const bytes = new Uint8Array(reader.sizeBytes)
    for (let filled = 0; filled < bytes.length; ) {
      const count = await reader.read(bytes.subarray(filled), filled)
      if (count === 0) throw new DaemonError('E_CORRUPTION', `${digest} is shorter than it was`)
      filled += count
    }
    return bytes
  } finally {
    await reader.close()
  }
}
