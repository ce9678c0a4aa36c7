import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { OciError } from './errors.ts'
import type { BlobSink, FetchOptions } from './fetch-blob.ts'
import type { BlobPlace } from './open-layout.ts'

const CHUNK_BYTES = 1 << 20

/**
 * Copies a blob of a layout into a sink, always from the beginning: rereading a local file is as quick as checking what
 * an earlier attempt left. The digest is not checked; the store does that.
 * @throws OciError `E_FORMAT` when the file ends early; errors of the file system and the sink as they are; on abort
 *   the signal's reason
 */
export async function readPlace(
  { path, offset, sizeBytes }: BlobPlace,
  sink: BlobSink,
  { signal, onProgress }: Pick<FetchOptions, 'signal' | 'onProgress'> = {}
): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, Math.max(1, sizeBytes)))
    for (let at = 0; at < sizeBytes; ) {
      signal?.throwIfAborted()
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, sizeBytes - at), offset + at)
      if (bytesRead === 0) throw new OciError('E_FORMAT', `${path} ends in the middle of a blob`, { path })
      await sink.write(at, buffer.subarray(0, bytesRead))
      at += bytesRead
      onProgress?.(at)
    }
  } finally {
    await handle.close()
  }
}
