/**
 * A rate limit in units (bytes, hashes) per second, with a burst of half a second's worth, at least 131,072. Pure.
 *
 * Invariant: `-2 × burst ≤ tokens ≤ burst`. Debt is allowed, so that a block of any size can be sent; its floor limits how
 * long others wait for that.
 */
export class TokenBucket {
  /** 0 or less: unlimited. It may change at any time. */
  bytesPerSecond: number
  #tokens: number
  #at: number

  constructor(bytesPerSecond: number, nowMs: number) {
    this.bytesPerSecond = bytesPerSecond
    // starts nearly empty: an initial burst would exceed the limit over short transfers.
    this.#tokens = 16_384
    this.#at = nowMs
  }

  get #burst(): number {
    return Math.max(131_072, this.bytesPerSecond / 2)
  }

  get limited(): boolean {
    return this.bytesPerSecond > 0
  }

  #refill(nowMs: number): void {
    if (nowMs <= this.#at) return
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#at) * this.bytesPerSecond) / 1000)
    this.#at = nowMs
  }

  ready(nowMs: number): boolean {
    if (!this.limited) return true
    this.#refill(nowMs)
    return this.#tokens > 0
  }

  /** Charges what is sent. If `ready` was not checked first, debt beyond the floor is not recorded. */
  spend(bytes: number): void {
    if (this.limited) this.#tokens = Math.max(-2 * this.#burst, this.#tokens - bytes)
  }

  waitMs(nowMs: number): number {
    if (this.ready(nowMs)) return 0
    return Math.max(1, Math.ceil((-this.#tokens * 1000) / this.bytesPerSecond))
  }
}
