/**
 * Units (bytes, hashes) per second over time, with a burst of half a second, at least 131,072: one long block. Pure: the caller
 * brings the clock.
 * Invariant: `-2 × burst ≤ tokens ≤ burst`. Debt is allowed so that any block can go; its floor bounds how long others wait
 * for what one spends.
 */
export class TokenBucket {
  /** 0 or less: unlimited. */
  readonly bytesPerSecond: number
  readonly #burst: number
  #tokens: number
  #at: number

  constructor(bytesPerSecond: number, nowMs: number) {
    this.bytesPerSecond = bytesPerSecond
    this.#burst = Math.max(131_072, bytesPerSecond / 2)
    // Starts with little: a burst at the start would exceed the limit over short transfers.
    this.#tokens = Math.min(16_384, this.#burst)
    this.#at = nowMs
  }

  get limited(): boolean {
    return this.bytesPerSecond > 0
  }

  #refill(nowMs: number): void {
    if (nowMs <= this.#at) return
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#at) * this.bytesPerSecond) / 1000)
    this.#at = nowMs
  }

  /** True when something may be sent now. */
  ready(nowMs: number): boolean {
    if (!this.limited) return true
    this.#refill(nowMs)
    return this.#tokens > 0
  }

  /** Accounts for what goes out. Without looking at `ready` first, what lies below the floor is not accounted for. */
  spend(bytes: number): void {
    if (this.limited) this.#tokens = Math.max(-2 * this.#burst, this.#tokens - bytes)
  }

  /** Milliseconds until `ready`. */
  waitMs(nowMs: number): number {
    if (this.ready(nowMs)) return 0
    return Math.max(1, Math.ceil((-this.#tokens * 1000) / this.bytesPerSecond))
  }
}
