import { type Clock, systemClock } from '@svc/internal-clock'

/** Slower than any line, and fast enough that a source which drips bytes does not hold a lane for days. */
export const MIN_BYTES_PER_SECOND = 1_024

/** The length of a span, in milliseconds, in which a source must keep to {@link MIN_BYTES_PER_SECOND}. */
export const SLOW_MS = 60_000

/** The least that a source must send in a span of this length. */
export const leastBytesIn = (spanMs: number): number => Math.ceil((MIN_BYTES_PER_SECOND * spanMs) / 1_000)

/**
 * Whether bytes come at the least rate over a whole transfer, pauses included: one that breaks off after each byte makes no
 * progress, however fast that byte was.
 */
export class MinRate {
  readonly #clock: Pick<Clock, 'monotonic'>
  #sinceMs: number
  #bytes = 0

  constructor(clock: Pick<Clock, 'monotonic'> = systemClock) {
    this.#clock = clock
    this.#sinceMs = clock.monotonic()
  }

  /** Counts bytes. True, and counting starts again, if those since the last start came fast enough. */
  keepsUpWith(bytes: number): boolean {
    this.#bytes += bytes
    const nowMs = this.#clock.monotonic()
    if (this.#bytes === 0 || this.#bytes * 1_000 < MIN_BYTES_PER_SECOND * (nowMs - this.#sinceMs)) return false
    this.#sinceMs = nowMs
    this.#bytes = 0
    return true
  }

  /** Leaves out the time until the returned function is called, once: no request is made in it. */
  pause(): () => void {
    const fromMs = this.#clock.monotonic()
    return () => {
      this.#sinceMs += this.#clock.monotonic() - fromMs
    }
  }
}
