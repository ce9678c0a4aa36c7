import { setTimeout as delay } from 'node:timers/promises'
import { OciError } from './errors.ts'

/** How often a transfer is retried, and how long it waits in between. */
export interface PatienceOptions {
  readonly signal?: AbortSignal | undefined
  /** Called before each pause with the reason, as text for a user. */
  readonly onWaiting?: ((message: string) => void) | undefined
  /** Attempts without progress. Default 6. */
  readonly tries?: number
  /** First pause in milliseconds; doubles with every attempt. Default 500. */
  readonly firstDelayMs?: number
}

const MAX_DELAY_MS = 30_000
/** When a registry asks for a longer pause than this, the transfer fails with its error. */
const MAX_RATE_WAIT_MS = 300_000

/**
 * A client error is final, except for these: request timeout, wrong offset of an upload, too early, too many requests.
 */
const PASSING_STATUSES: readonly number[] = [408, 416, 425, 429]

const mayPass = (failure: unknown): failure is OciError =>
  failure instanceof OciError &&
  ['E_UNAVAILABLE', 'E_RATE_LIMITED'].includes(failure.code) &&
  ((failure.details.status ?? 500) >= 500 || PASSING_STATUSES.includes(failure.details.status ?? 0))

/** Counts the failed attempts of one transfer; progress resets the count. */
export class Patience {
  readonly #options: PatienceOptions
  #failures = 0

  constructor(options: PatienceOptions) {
    this.#options = options
  }

  progress(): void {
    this.#failures = 0
  }

  /**
   * Pauses and returns if a retry makes sense. @throws the failure itself if it is permanent or the attempts are used
   * up
   */
  async after(failure: unknown): Promise<void> {
    const { signal, onWaiting, tries = 6, firstDelayMs = 500 } = this.#options
    signal?.throwIfAborted()
    if (!mayPass(failure)) throw failure
    if (++this.#failures >= tries) throw failure
    const backoff = Math.min(firstDelayMs * 2 ** (this.#failures - 1), MAX_DELAY_MS)
    const waitMs = Math.max(failure.details.retryAfterMs ?? 0, backoff * (0.5 + Math.random() / 2))
    if (waitMs > MAX_RATE_WAIT_MS) throw failure
    onWaiting?.(`${failure.message}; next try in ${Math.ceil(waitMs / 1_000)} s`)
    await delay(waitMs, undefined, signal === undefined ? {} : { signal })
  }
}
