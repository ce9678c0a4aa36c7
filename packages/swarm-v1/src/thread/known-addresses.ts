/** Longer than the library's longest pause before it tries an address again. */
const RETRY_MS = 20_000

/**
 * Limits the addresses of one torrent that strangers named. The library counts those that wait for a connection or have one,
 * but not those that failed and wait for one of three more attempts: addresses that fail at once would make room for the
 * next ones, without end.
 *
 * Invariant: at most `max` entries.
 */
export class KnownAddresses {
  readonly #max: number
  readonly #isHeld: (address: string) => boolean
  /** With the time when the library was last seen to hold it. */
  readonly #seenMs = new Map<string, number>()

  /** @param isHeld whether the library has it in its list now */
  constructor(max: number, isHeld: (address: string) => boolean) {
    this.#max = max
    this.#isHeld = isHeld
  }

  /** Whether a stranger's address may be taken; it counts from now on. */
  admits(address: string, nowMs: number): boolean {
    if (!this.#seenMs.has(address) && this.#seenMs.size >= this.#max) return false
    this.#seenMs.set(address, nowMs)
    return true
  }

  /** Forgets those that the library has given up; to be called every few seconds. */
  sweep(nowMs: number): void {
    for (const [address, seenMs] of this.#seenMs) {
      if (this.#isHeld(address)) this.#seenMs.set(address, nowMs)
      else if (nowMs - seenMs > RETRY_MS) this.#seenMs.delete(address)
    }
  }
}
