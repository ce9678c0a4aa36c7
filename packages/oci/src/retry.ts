import { Backoff, type BackoffTimings, DEFAULT_BACKOFF, DownloadError } from '@svc/internal-http'
import { OciError } from './errors.ts'

/** How often a transfer is retried, and how long it waits in between. */
export interface RetryOptions {
  readonly signal?: AbortSignal | undefined
  /** Called before each pause with the reason, as text for a user. */
  readonly onWaiting?: ((message: string) => void) | undefined
  /** Attempts without progress. Default 6. */
  readonly tries?: number
  /** First pause in milliseconds; doubles with every attempt. Default 500. */
  readonly firstDelayMs?: number
}

/**
 * A client error is final, except for these: request timeout, wrong offset of an upload, too early, too many requests.
 */
const PASSING_STATUSES: readonly number[] = [408, 416, 425, 429]

/** A failure that may pass, for a {@link Backoff}; any other as it is. */
export function failedAttempt(failure: unknown): unknown {
  if (!(failure instanceof OciError) || !['E_UNAVAILABLE', 'E_RATE_LIMITED'].includes(failure.code)) return failure
  const { status = 500, retryAfterMs } = failure.details
  if (status < 500 && !PASSING_STATUSES.includes(status)) return failure
  return new DownloadError(failure.code === 'E_RATE_LIMITED' ? 'wait' : 'retry', failure, retryAfterMs)
}

export const backoffOf = ({ onWaiting, ...timings }: RetryOptions): Backoff =>
  new Backoff(timingsOf(timings), ({ message }) => onWaiting?.(message))

export const timingsOf = ({ tries, firstDelayMs }: RetryOptions): BackoffTimings => ({
  ...DEFAULT_BACKOFF,
  ...(tries !== undefined && { tries }),
  ...(firstDelayMs !== undefined && { firstDelayMs })
})
