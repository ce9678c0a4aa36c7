/** Smoothed rate of a growing counter: exponential over 5 s, so that a burst does not make the remaining time jump. */
export class Rate {
  #last: { readonly atMs: number; readonly value: number } | undefined
  #perSecond: number | undefined

  /** @returns the rate per second, undefined until it can be estimated. */
  update(value: number, atMs: number): number | undefined {
    const last = this.#last
    if (last === undefined) {
      this.#last = { atMs, value }
      return undefined
    }
    const seconds = (atMs - last.atMs) / 1000
    if (seconds < 0.2) return this.#perSecond
    const now = Math.max(0, value - last.value) / seconds
    const weight = 1 - Math.exp(-seconds / 5)
    this.#perSecond = this.#perSecond === undefined ? now : this.#perSecond + weight * (now - this.#perSecond)
    this.#last = { atMs, value }
    return this.#perSecond
  }
}
