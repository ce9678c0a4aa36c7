const MIN_ELAPSED_MS = 100

/** Bytes per second over the last few seconds. Pure: the owner calls `tick` about once a second. */
export class RateMeter {
  #window = 0
  #rate = 0
  #at: number

  constructor(nowMs: number) {
    this.#at = nowMs
  }

  /** Smoothed over about three seconds. */
  get bytesPerSecond(): number {
    return this.#rate
  }

  /** The rate since the last tick; the smoothed one if that was just now. */
  recent(nowMs: number): number {
    const elapsed = nowMs - this.#at
    return elapsed < MIN_ELAPSED_MS ? this.#rate : (this.#window * 1000) / elapsed
  }

  add(bytes: number): void {
    this.#window += bytes
  }

  tick(nowMs: number): void {
    const elapsed = nowMs - this.#at
    if (elapsed < MIN_ELAPSED_MS) return
    const now = (this.#window * 1000) / elapsed
    const weight = Math.min(1, elapsed / 3000)
    // the first measurement is used unsmoothed.
    this.#rate = this.#rate === 0 ? now : this.#rate + (now - this.#rate) * Math.max(0.33, weight)
    if (this.#rate < 1) this.#rate = 0
    this.#window = 0
    this.#at = nowMs
  }
}
