/** Counts events within one second, in total and per key. */
export class PerSecond {
  readonly #total: number
  readonly #each: number
  readonly #taken = new Map<string, number>()
  #second = Number.NaN
  #count = 0

  constructor(bounds: { readonly total: number; readonly each?: number }) {
    this.#total = bounds.total
    this.#each = bounds.each ?? Number.POSITIVE_INFINITY
  }

  /** Whether one more event of `key` is within this second's limits; if so, it is counted. */
  take(key: string, nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#count = 0
      this.#taken.clear()
    }
    const taken = this.#taken.get(key) ?? 0
    if (this.#count >= this.#total || taken >= this.#each) return false
    this.#count += 1
    this.#taken.set(key, taken + 1)
    return true
  }
}
