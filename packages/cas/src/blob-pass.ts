import type { Sha256Digest } from '@svc/ref'
import { openBlobFile, sizeOf } from './blob-reader.ts'
import { throwIfAborted } from './errors.ts'
import type { BlobPass } from './read-twice.ts'
import type { VerifyOptions, VerifyResult } from './store.ts'
import type { StoreContext } from './store-context.ts'

/** What one pass over a blob's file found, and which file that was. */
export interface FilePass extends BlobPass {
  readonly attachments: VerifyResult['attachments']
  readonly dev: number
  readonly ino: number
}

/**
 * Reads a blob's file to its end, whatever its size. @throws CasError `E_NOT_FOUND`, `E_CORRUPT` for what is not a regular
 * file, `E_IO`, `E_ABORTED`
 */
export async function blobPass(
  { port, layout, threads }: StoreContext,
  digest: Sha256Digest,
  { attachments = [], onProgress }: Pick<VerifyOptions, 'attachments' | 'onProgress'>,
  signal: AbortSignal
): Promise<FilePass> {
  const path = layout.blob(digest)
  const { thread, release } = await threads.takeBusy(signal)
  try {
    const { fd, sizeBytes, dev, ino } = await openBlobFile(port, digest, path)
    const session = threads.nextSession()
    const stop = (): void => void thread.call('drop', { session }).catch(() => undefined)
    signal.addEventListener('abort', stop)
    try {
      throwIfAborted(signal)
      const spec = { flat: true, attachments, sizeBytes }
      const result = await thread.call('run', { session, spec, fd, progress: onProgress !== undefined }, { onProgress })
      onProgress?.(result.sizeBytes)
      return { ...result, digest: result.digest!, fileBytes: sizeOf(port, fd, path), dev, ino }
    } catch (error) {
      await thread.call('drop', { session }).catch(() => undefined)
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
      await port.close(fd).catch(() => undefined)
    }
  } finally {
    release()
  }
}
