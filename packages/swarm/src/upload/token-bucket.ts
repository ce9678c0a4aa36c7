/**
 * Bytes per second over time, with a burst of half a second (at least one 128 KiB block). Pure: the caller brings
 * the clock. Invariant: never more tokens than the burst; debt is allowed for one block, so that any block can go.
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

  /** Accounts for bytes that go out, also those that could not be refused (hashes, metadata). */
  spend(bytes: number): void {
    if (this.limited) this.#tokens -= bytes
  }

  /** Milliseconds until `ready`. */
  waitMs(nowMs: number): number {
    if (this.ready(nowMs)) return 0
    return Math.max(1, Math.ceil((-this.#tokens * 1000) / this.bytesPerSecond))
  }
}
