import { dropFromCache } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { openBlobFile, sizeOf } from './blob-reader.ts'
import { CasError, throwIfAborted } from './errors.ts'
import type { VerifyOptions, VerifyResult } from './store.ts'
import type { StoreContext } from './store-context.ts'

/** What one pass over a blob's file found, and which file that was. */
export interface BlobPass {
  readonly digest: Sha256Digest
  /** Bytes that were read. */
  readonly sizeBytes: number
  /** Size of the file after the last read. */
  readonly fileBytes: number
  readonly attachments: VerifyResult['attachments']
  readonly dev: number
  readonly ino: number
}

/**
 * Alone decides what may go to quarantine (spec disk.24): a blob is corrupt when two passes over its file read it to its
 * end without an error and agree on another digest; the second one bypasses the system's cache where possible. Anything
 * else is an error of the disk, and the blob stays.
 * @returns the last pass, which has the blob's digest unless the file is corrupt
 * @throws CasError `E_IO` for a pass that ended early, and for two that do not agree; as {@link blobPass}
 */
export async function readTwice(
  context: StoreContext,
  digest: Sha256Digest,
  options: Pick<VerifyOptions, 'attachments' | 'onProgress'>,
  signal: AbortSignal
): Promise<BlobPass> {
  const path = context.layout.blob(digest)
  const first = await blobPass(context, digest, options, signal)
  requireWhole(first, path)
  if (first.digest === digest) return first
  await dropFromCache(path)
  const second = await blobPass(context, digest, options, signal)
  requireWhole(second, path)
  if (second.digest === digest || second.digest === first.digest) return second
  throw unreliable(path, 'two reads gave different bytes')
}

function requireWhole({ sizeBytes, fileBytes }: BlobPass, path: string): void {
  if (sizeBytes !== fileBytes) throw unreliable(path, `a read ended after ${sizeBytes} of ${fileBytes} bytes`)
}

const unreliable = (path: string, what: string): CasError =>
  new CasError('E_IO', `read blob ${path}: ${what}; the blob stays where it is`, { operation: 'read blob', path })

/**
 * Reads a blob's file to its end, whatever its size. @throws CasError `E_NOT_FOUND`, `E_CORRUPT` for what is not a regular
 * file, `E_IO`, `E_ABORTED`
 */
async function blobPass(
  { port, layout, threads }: StoreContext,
  digest: Sha256Digest,
  { attachments = [], onProgress }: Pick<VerifyOptions, 'attachments' | 'onProgress'>,
  signal: AbortSignal
): Promise<BlobPass> {
  const path = layout.blob(digest)
  const { thread, release } = await threads.acquireBusy(signal)
  try {
    const { fd, sizeBytes, dev, ino } = await openBlobFile(port, digest, path)
    const session = threads.nextSession()
    const stop = (): void => void thread.call('drop', { session }).catch(() => undefined)
    signal.addEventListener('abort', stop)
    try {
      throwIfAborted(signal)
      const spec = { attachments, sizeBytes }
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
