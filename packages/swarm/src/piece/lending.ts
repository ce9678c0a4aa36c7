/**
 * Memory of pieces that may be lent to the system at the same time. What is lent to a peer that falls silent, and has to be left to it,
 * is memory beyond the budget: so this is how much that can be.
 */
const MAX_LENT_BYTES = 33_554_432

/**
 * Bounds how much receive memory is lent to the system, which writes there what sockets bring. Each connection is lent one slot at most.
 *
 * Invariant: the sum of what was taken and not given back ≤ the limit.
 */
export class Lending {
  readonly #maxBytes: number
  #lentBytes = 0

  constructor(maxBytes = MAX_LENT_BYTES) {
    this.#maxBytes = maxBytes
  }

  get lentBytes(): number {
    return this.#lentBytes
  }

  take(bytes: number): boolean {
    if (this.#lentBytes + bytes > this.#maxBytes) return false
    this.#lentBytes += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#lentBytes -= bytes
  }
}

/** Of this thread: all engines share its memory. */
export const lending = new Lending()
