/** Shared memory in which one piece is received and verified. */
export interface Slot {
  /** A view of exactly the requested size. */
  readonly bytes: Uint8Array
  /** Capacity: a power of two, at least 16 KiB. */
  readonly capacity: number
}

/**
 * Receive memory of the whole engine. Without a slot nothing is requested, and TCP's flow control slows the senders.
 *
 * Invariant: bytes in use plus bytes kept for reuse ≤ budget, but the first slot is always granted.
 */
export class SlotPool {
  readonly budgetBytes: number
  readonly #free = new Map<number, SharedArrayBuffer[]>()
  readonly #waiting = new Set<() => void>()
  #usedBytes = 0
  #keptBytes = 0

  constructor(budgetBytes: number) {
    this.budgetBytes = budgetBytes
  }

  /** Undefined when the budget is used up; see `wait`. */
  acquire(sizeBytes: number): Slot | undefined {
    const capacity = Math.max(16_384, 2 ** Math.ceil(Math.log2(sizeBytes)))
    if (this.#usedBytes > 0 && this.#usedBytes + capacity > this.budgetBytes) return undefined
    this.#usedBytes += capacity
    const buffer = this.#free.get(capacity)?.pop()
    if (buffer !== undefined) {
      this.#keptBytes -= capacity
      return { bytes: new Uint8Array(buffer, 0, sizeBytes), capacity }
    }
    if (this.#usedBytes + this.#keptBytes > this.budgetBytes) this.trim()
    return { bytes: new Uint8Array(new SharedArrayBuffer(capacity), 0, sizeBytes), capacity }
  }

  /** Returns a slot. Nobody may touch it afterwards. */
  release(slot: Slot): void {
    this.#usedBytes -= slot.capacity
    if (this.#usedBytes + this.#keptBytes + slot.capacity <= this.budgetBytes) {
      const kept = this.#free.get(slot.capacity) ?? []
      kept.push(slot.bytes.buffer as SharedArrayBuffer)
      this.#free.set(slot.capacity, kept)
      this.#keptBytes += slot.capacity
    }
    const next = this.#waiting.values().next().value
    if (next === undefined) return
    this.#waiting.delete(next)
    next()
  }

  /** Calls `notify` once when memory is returned; first come, first served. */
  wait(notify: () => void): void {
    this.#waiting.add(notify)
  }

  leave(notify: () => void): void {
    this.#waiting.delete(notify)
  }

  trim(): void {
    this.#free.clear()
    this.#keptBytes = 0
  }
}
