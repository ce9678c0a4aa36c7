import { download, type RangeSink } from '@svc/internal-http'
import type { Sha256Digest } from '@svc/ref'
import type { Repository } from './registry.ts'
import { unavailable } from './registry-client.ts'
import { failedAttempt, type RetryOptions, timingsOf } from './retry.ts'

/** The destination of a blob, such as a store's partial file, which may hold ranges from an earlier attempt. */
export type BlobSink = Pick<RangeSink, 'sizeBytes' | 'ranges' | 'write'>

/** How to fetch a blob. */
export interface FetchOptions extends RetryOptions {
  /** Called with the total of bytes in the sink, not a delta. */
  readonly onProgress?: (bytesDone: number) => void
}

/**
 * Fetches the ranges of a blob that a sink lacks, and retries as long as there is progress. The digest is not checked;
 * the store does that.
 * @throws OciError `E_NOT_FOUND`, `E_DENIED`, `E_CREDENTIALS`, `E_RATE_LIMITED`, `E_UNAVAILABLE`; errors of the sink as
 *   they are; on abort the signal's reason
 */
export async function fetchBlob(
  repository: Repository,
  digest: Sha256Digest,
  sink: BlobSink,
  options: FetchOptions = {}
): Promise<void> {
  const { signal, onProgress, onWaiting } = options
  await download(
    {
      open: (span, signal) => repository.blob(digest, span, { signal }),
      failure: (error) => failedAttempt(unavailable(error, 'the transfer was cut off'))
    },
    sink,
    { signal, onProgress, timings: timingsOf(options), onWaiting: ({ message }) => onWaiting?.(message) }
  )
}
