import { setTimeout as delay } from 'node:timers/promises'
import { SLOW_MS } from '@svc/internal-net'
import { HubError } from './errors.ts'
import type { RetryTimings } from './limits.ts'
import type { Trouble } from './trouble.ts'

export const DEFAULT_TIMINGS: RetryTimings = {
  tries: 6,
  firstDelayMs: 500,
  maxDelayMs: 30_000,
  maxRateWaitMs: 300_000,
  stallMs: 30_000,
  slowMs: SLOW_MS,
  connectMs: 10_000,
  random: Math.random,
  now: Date.now,
  sleep: async (delayMs, signal) => {
    await delay(delayMs, undefined, signal ? { signal } : {})
  }
}

/** Passed to the caller before every pause, so that it can show why nothing is transferred. */
export interface Waiting {
  readonly reason: 'rate-limited' | 'retry'
  readonly waitMs: number
  /** The problem and the length of the pause, as text for a user. */
  readonly message: string
}

/**
 * Counts the attempts of one request or one range. Invariant: `failures` and `rateWaitedMs` cover only the time since
 * the last progress.
 */
export class Retry {
  #failures = 0
  #rateAnswers = 0
  #rateWaitedMs = 0
  readonly #timings: RetryTimings
  readonly #onWaiting: ((waiting: Waiting) => void) | undefined

  constructor(timings: RetryTimings, onWaiting?: (waiting: Waiting) => void) {
    this.#timings = timings
    this.#onWaiting = onWaiting
  }

  progress(): void {
    this.#failures = 0
    this.#rateAnswers = 0
    this.#rateWaitedMs = 0
  }

  /**
   * Returns after the pause that `trouble` requires. @throws HubError when the attempts or the waiting time are used
   * up.
   */
  async after(trouble: Trouble, signal: AbortSignal | undefined): Promise<void> {
    if (trouble.kind === 'wait') return await this.#waitForRate(trouble, signal)
    this.#failures++
    if (trouble.kind === 'final' || this.#failures >= this.#timings.tries) throw trouble.error
    // Signed URLs expire regularly: the first time, ask for a new one at once.
    if (trouble.kind === 'stale-url' && this.#failures === 1) return
    const asked = Math.min(trouble.waitMs ?? 0, 2 * this.#timings.maxDelayMs)
    await this.#pause('retry', Math.max(this.#backoff(this.#failures), asked), trouble, signal)
  }

  async #waitForRate(trouble: Trouble, signal: AbortSignal | undefined): Promise<void> {
    this.#rateAnswers++
    const waitMs = Math.max(trouble.waitMs ?? 0, this.#backoff(this.#rateAnswers))
    const { maxRateWaitMs } = this.#timings
    if (this.#rateWaitedMs + waitMs > maxRateWaitMs) {
      throw new HubError(
        'E_RATE_LIMITED',
        'rate-limited',
        `the hub limits the rate of requests and asks to wait another ${seconds(waitMs)}, which is more than the ` +
          `${seconds(maxRateWaitMs)} that are waited for at most; try again later, or set a token (it has a larger quota)`,
        trouble.error.details,
        trouble.error
      )
    }
    this.#rateWaitedMs += waitMs
    await this.#pause('rate-limited', waitMs, trouble, signal)
  }

  async #pause(
    reason: Waiting['reason'],
    waitMs: number,
    trouble: Trouble,
    signal: AbortSignal | undefined
  ): Promise<void> {
    const what = reason === 'rate-limited' ? 'the hub limits the rate of requests' : trouble.error.message
    this.#onWaiting?.({ reason, waitMs, message: `waiting ${seconds(waitMs)}: ${what}` })
    await this.#timings.sleep(waitMs, signal)
  }

  /** Half of the exponential step is fixed, half is jitter. */
  #backoff(failures: number): number {
    const { firstDelayMs, maxDelayMs, random } = this.#timings
    const stepMs = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.min(failures - 1, 16))
    return stepMs / 2 + (stepMs / 2) * random()
  }
}

const seconds = (ms: number): string => `${ms < 10_000 ? (ms / 1000).toFixed(1) : Math.ceil(ms / 1000)} s`
