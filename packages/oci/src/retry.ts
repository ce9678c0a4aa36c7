import { Backoff, DEFAULT_BACKOFF, DownloadError } from '@svc/internal-http'
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

export const timingsOf = ({
  tries = DEFAULT_BACKOFF.tries,
  firstDelayMs = DEFAULT_BACKOFF.firstDelayMs
}: RetryOptions): typeof DEFAULT_BACKOFF => ({ ...DEFAULT_BACKOFF, tries, firstDelayMs })

/** Counts the failed attempts of one upload; progress resets the count. */
export class Retry {
  readonly #options: RetryOptions
  readonly #backoff: Backoff

  constructor(options: RetryOptions) {
    this.#options = options
    this.#backoff = new Backoff(timingsOf(options), ({ message }) => options.onWaiting?.(message))
  }

  progress(): void {
    this.#backoff.progress()
  }

  /** Pauses and returns if a retry makes sense. @throws the failure itself if it is permanent or the attempts are used up */
  async after(failure: unknown): Promise<void> {
    const { signal } = this.#options
    signal?.throwIfAborted()
    const attempt = failedAttempt(failure)
    if (!(attempt instanceof DownloadError)) throw attempt
    await this.#backoff.after(attempt, signal)
  }
}
