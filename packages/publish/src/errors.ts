import { isNoSpace } from '@svc/internal-files'

/** Stable codes of {@link PublishError}; programs decide by them, messages are for people. */
export type PublishErrorCode =
  /** No place that can be published to: malformed, in another region, or something of somebody else's is in the way. */
  | 'E_BAD_TARGET'
  /** No credentials were found, or they cannot be used. */
  | 'E_CREDENTIALS'
  /** The store wants other credentials, or more rights. */
  | 'E_DENIED'
  /** No such bucket. */
  | 'E_NOT_FOUND'
  /** The clock of this machine is so wrong that signatures are void. */
  | 'E_CLOCK'
  /** The store limits how often it is asked, and went on with it. */
  | 'E_RATE_LIMITED'
  /** The store cannot be reached, fails, or answers what no store answers. */
  | 'E_UNAVAILABLE'
  /** A file of the model has other bytes than its digest says. */
  | 'E_DIGEST_MISMATCH'
  /** What was published is not what comes back when it is read as a webseed is read. */
  | 'E_CHECK_FAILED'
  /** The file system, the quota or the bucket is full. */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'

/** The one error class of this package. */
export class PublishError extends Error {
  override readonly name = 'PublishError'
  readonly code: PublishErrorCode

  constructor(code: PublishErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Wraps a failure of the file system; errors of this package and aborts are passed on. */
export function ioError(error: unknown, doing: string, signal?: AbortSignal): unknown {
  if (error instanceof PublishError || signal?.aborted === true) return error
  if (isNoSpace(error))
    return new PublishError('E_NO_SPACE', `no room to ${doing}; the same command goes on where it stopped`, error)
  return new PublishError('E_IO', `cannot ${doing}: ${(error as Error).message}`, error)
}
