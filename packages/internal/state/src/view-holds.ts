import { type Clock, timestampOf } from '@svc/internal-clock'

/** How long running commands hold managed views. */
export class ViewHolds {
  /** In milliseconds of the monotonic clock, by the path of the view. */
  readonly #until = new Map<string, number>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  hold(place: string, seconds: number): void {
    const until = this.#clock.monotonic() + seconds * 1000
    this.#until.set(place, Math.max(until, this.#until.get(place) ?? 0))
  }

  of(place: string): { readonly heldUntil?: string } {
    const until = this.#until.get(place)
    const leftMs = until === undefined ? 0 : until - this.#clock.monotonic()
    if (leftMs > 0) return { heldUntil: timestampOf(this.#clock, leftMs) }
    this.#until.delete(place)
    return {}
  }
}
