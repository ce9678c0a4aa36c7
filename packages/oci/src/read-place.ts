import { openRegular, readChunks } from '@svc/internal-files'
import { OciError } from './errors.ts'
import type { BlobSink, FetchOptions } from './fetch-blob.ts'
import type { BlobPlace } from './open-layout.ts'

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
  await using handle = await openRegular(path, { follow: true })
  let at = 0
  for await (const chunk of readChunks(handle, offset, offset + sizeBytes)) {
    signal?.throwIfAborted()
    await sink.write(at, chunk)
    at += chunk.length
    onProgress?.(at)
  }
  if (at < sizeBytes) throw new OciError('E_FORMAT', `${path} ends in the middle of a blob`, { path })
}
