import type { Clock } from '@svc/internal-clock'

/** How long a fetch continues without progress. */
export interface FetchTimeouts {
  readonly clock: Clock
  /** After this long without a byte the fetch fails. */
  readonly fillTimeoutMs: number
  /** If there is neither a tracker nor a DHT to find others: after this long without a source the fetch fails. */
  readonly lonelyTimeoutMs: number | undefined
}

const LOOK_MS = 250

/** Notices that a fetch receives nothing any more, or has no source. */
export class SourceWatch {
  readonly #timeouts: FetchTimeouts
  #bytes = -1
  #gotAtMs: number
  #accompaniedAtMs: number

  constructor(timeouts: FetchTimeouts) {
    this.#timeouts = timeouts
    this.#gotAtMs = timeouts.clock.monotonic()
    this.#accompaniedAtMs = this.#gotAtMs
  }

  /** @param bytes all that has come so far */
  look(bytes: number, hasSource: boolean): 'silent' | 'lonely' | undefined {
    const { clock, fillTimeoutMs, lonelyTimeoutMs } = this.#timeouts
    const nowMs = clock.monotonic()
    if (hasSource) this.#accompaniedAtMs = nowMs
    if (bytes !== this.#bytes) this.#gotAtMs = nowMs
    this.#bytes = bytes
    if (nowMs - this.#gotAtMs >= fillTimeoutMs) return 'silent'
    if (lonelyTimeoutMs !== undefined && nowMs - this.#accompaniedAtMs >= lonelyTimeoutMs) return 'lonely'
    return undefined
  }

  /** Our own disk is read, which no source can hurry. */
  rest(): void {
    this.#gotAtMs = this.#timeouts.clock.monotonic()
    this.#accompaniedAtMs = this.#gotAtMs
  }

  /** Resolves with `events`, or as undefined when it is time for the next look. */
  async next<Event>(...events: readonly Promise<Event>[]): Promise<Event | undefined> {
    const pause = Promise.withResolvers<undefined>()
    const timer = this.#timeouts.clock.after(LOOK_MS, () => pause.resolve(undefined))
    try {
      return await Promise.race([...events, pause.promise])
    } finally {
      timer.cancel()
    }
  }
}
