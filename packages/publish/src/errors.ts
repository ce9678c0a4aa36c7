import { CodedError, errnoOf } from '@svc/internal-errors'
import { isNoSpace, NOT_REGULAR } from '@svc/internal-files'

/** Stable codes of {@link PublishError}. Programs should test these; messages may change. */
export type PublishErrorCode =
  /** The destination is unusable: malformed, in another region, or it holds files that svc did not write. */
  | 'E_BAD_TARGET'
  /** No usable credentials were found. */
  | 'E_CREDENTIALS'
  /** The store rejected the credentials, or they lack permissions. */
  | 'E_DENIED'
  /** No such bucket. */
  | 'E_NOT_FOUND'
  /** The local clock is too far off for request signatures to be accepted. */
  | 'E_CLOCK'
  /** The store kept throttling requests through all retries. */
  | 'E_RATE_LIMITED'
  /** The store is unreachable, failing, or answers with something other than S3; or nobody answers at the reader's URL. */
  | 'E_UNAVAILABLE'
  /** A file of the model does not match its digest. */
  | 'E_DIGEST_MISMATCH'
  /** Reading back over the reader's path returned something other than what was published. */
  | 'E_CHECK_FAILED'
  /** The file system, the quota or the bucket is full. */
  | 'E_NO_SPACE'
  /** Any other file system error; the original is the `cause`. */
  | 'E_IO'

/** The only error class of this package. */
export class PublishError extends CodedError<PublishErrorCode> {
  override readonly name = 'PublishError'

  constructor(code: PublishErrorCode, message: string, cause?: unknown) {
    super(code, message, {}, cause)
  }
}

/** Runs `work`; its file system errors say what could not be done. @throws as {@link ioError} */
export async function attempt<T>(doing: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw ioError(error, doing, signal)
  }
}

/** Wraps a file system error; errors of this package and aborts pass through unchanged. */
export function ioError(error: unknown, doing: string, signal?: AbortSignal): unknown {
  if (error instanceof PublishError || signal?.aborted === true) return error
  if (isNoSpace(error))
    return new PublishError('E_NO_SPACE', `no space left to ${doing}; run the same command again to resume`, error)
  const code = errnoOf(error) === NOT_REGULAR ? 'E_BAD_TARGET' : 'E_IO'
  return new PublishError(code, `cannot ${doing}: ${(error as Error).message}`, error)
}
