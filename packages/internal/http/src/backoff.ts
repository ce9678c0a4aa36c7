import { systemClock } from '@svc/internal-clock'

/**
 * What to do after a failed attempt: `retry` again after a pause · `wait` the server asked to wait · `final` a retry is
 * useless · `busy` as `retry`, since the source takes no more requests now · `stale-url` the signed URL no longer serves: resolve again · `wrong` the bytes offered are not those expected ·
 * `changed` the representation changed between two ranges · `no-ranges` the server ignores Range: read the whole file in one stream.
 */
export type DownloadErrorKind = 'retry' | 'busy' | 'wait' | 'final' | 'stale-url' | 'wrong' | 'changed' | 'no-ranges'

/** A failed attempt: its kind, and the error to report if it was the last one. */
export class DownloadError<E extends Error = Error> extends Error {
  override readonly name = 'DownloadError'
  readonly kind: DownloadErrorKind
  readonly error: E
  /** The wait that the server requested, in milliseconds. */
  readonly waitMs: number | undefined

  constructor(kind: DownloadErrorKind, error: E, waitMs?: number) {
    super(error.message, { cause: error })
    this.kind = kind
    this.error = error
    this.waitMs = waitMs
  }
}

/** How long to keep trying. Times are in milliseconds. */
export interface BackoffTimings {
  /** Attempts without progress before giving up. */
  readonly tries: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** Total time spent waiting for a rate limit without progress. */
  readonly maxRateWaitMs: number
  /** Returns a number in [0, 1), for jitter. */
  readonly random: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>
}

export const DEFAULT_BACKOFF: BackoffTimings = {
  tries: 6,
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  maxRateWaitMs: 300_000,
  random: Math.random,
  sleep: systemClock.sleep
}

/** Passed to the caller before every pause, so that it can show why nothing is transferred. */
export interface RetryWait {
  readonly reason: 'rate-limited' | 'retry'
  readonly waitMs: number
  /** The problem and the length of the pause, as text for a user. */
  readonly message: string
}

/**
 * Counts the failed attempts of one request, or of one range, and pauses between them: exponentially longer, with jitter. Invariant:
 * `failures` and `rateWaitedMs` cover only the time since the last progress.
 */
export class Backoff {
  #failures = 0
  #rateAnswers = 0
  #rateWaitedMs = 0
  readonly #timings: BackoffTimings
  readonly #onWaiting: ((waiting: RetryWait) => void) | undefined

  constructor(timings: BackoffTimings, onWaiting?: (waiting: RetryWait) => void) {
    this.#timings = timings
    this.#onWaiting = onWaiting
  }

  progress(): void {
    this.#failures = 0
    this.#rateAnswers = 0
    this.#rateWaitedMs = 0
  }

  /**
   * Returns after the pause that `failure` requires. @throws its error when the attempts or the waiting time are used up; whatever is no
   * DownloadError as it is; on abort the signal's reason
   */
  async after(failure: unknown, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (!(failure instanceof DownloadError)) throw failure
    if (failure.kind === 'wait') return await this.#waitForRate(failure, signal)
    this.#failures++
    if (failure.kind === 'final' || this.#failures >= this.#timings.tries) throw failure.error
    // signed URLs expire regularly: the first time, ask for a new one at once.
    if (failure.kind === 'stale-url' && this.#failures === 1) return
    const asked = Math.min(failure.waitMs ?? 0, 2 * this.#timings.maxDelayMs)
    await this.#pause('retry', Math.max(backoffMs(this.#timings, this.#failures), asked), failure, signal)
  }

  async #waitForRate(failure: DownloadError, signal: AbortSignal | undefined): Promise<void> {
    this.#rateAnswers++
    const waitMs = Math.max(failure.waitMs ?? 0, backoffMs(this.#timings, this.#rateAnswers))
    if (this.#rateWaitedMs + waitMs > this.#timings.maxRateWaitMs) throw failure.error
    this.#rateWaitedMs += waitMs
    await this.#pause('rate-limited', waitMs, failure, signal)
  }

  async #pause(
    reason: RetryWait['reason'],
    waitMs: number,
    failure: DownloadError,
    signal: AbortSignal | undefined
  ): Promise<void> {
    this.#onWaiting?.({ reason, waitMs, message: `waiting ${seconds(waitMs)}: ${failure.error.message}` })
    await this.#timings.sleep(waitMs, signal)
  }
}

/** The pause after so many failures in a row. Half of the exponential step is fixed, half is jitter. */
export function backoffMs(
  { firstDelayMs, maxDelayMs, random }: Pick<BackoffTimings, 'firstDelayMs' | 'maxDelayMs' | 'random'>,
  failures: number
): number {
  const stepMs = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(failures - 1, 16))
  return stepMs / 2 + (stepMs / 2) * random()
}

const seconds = (ms: number): string => `${ms < 10_000 ? (ms / 1000).toFixed(1) : Math.ceil(ms / 1000)} s`
