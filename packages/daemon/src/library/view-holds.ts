/** How long running commands hold managed views. */
export class ViewHolds {
  /** In milliseconds of the monotonic clock, by the path of the view. */
  readonly #until = new Map<string, number>()

  hold(place: string, seconds: number): void {
    const until = performance.now() + seconds * 1000
    this.#until.set(place, Math.max(until, this.#until.get(place) ?? 0))
  }

  of(place: string): { readonly heldUntil?: string } {
    const until = this.#until.get(place)
    const leftMs = until === undefined ? 0 : until - performance.now()
    if (leftMs > 0) return { heldUntil: new Date(Date.now() + leftMs).toISOString() }
    this.#until.delete(place)
    return {}
  }
}
