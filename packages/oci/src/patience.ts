import { setTimeout as delay } from 'node:timers/promises'
import { OciError } from './errors.ts'

/** How often a transfer is tried again, and how long it waits. */
export interface PatienceOptions {
  readonly signal?: AbortSignal | undefined
  /** Called before a pause with its reason, fit to be shown. */
  readonly onWaiting?: ((message: string) => void) | undefined
  /** Tries without progress. Default 6. */
  readonly tries?: number
  /** First pause in milliseconds, doubled every time. Default 500. */
  readonly firstDelayMs?: number
}

const MAX_DELAY_MS = 30_000
/** A registry that wants to be left alone for longer is reported instead. */
const MAX_RATE_WAIT_MS = 300_000

/** What a client did wrong stays wrong, but for these: too slow, at another place than the other side, too early, too often. */
const PASSING_STATUSES: readonly number[] = [408, 416, 425, 429]

const mayPass = (failure: unknown): failure is OciError =>
  failure instanceof OciError &&
  ['E_UNAVAILABLE', 'E_RATE_LIMITED'].includes(failure.code) &&
  ((failure.details.status ?? 500) >= 500 || PASSING_STATUSES.includes(failure.details.status ?? 0))

/** Counts the tries of one transfer; progress starts the count anew. */
export class Patience {
  readonly #options: PatienceOptions
  #failures = 0

  constructor(options: PatienceOptions) {
    this.#options = options
  }

  progress(): void {
    this.#failures = 0
  }

  /** Returns after a pause when the failure may pass. @throws the failure itself when it will not, or the tries are used up */
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
