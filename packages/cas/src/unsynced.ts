/**
 * Bytes that the downloads of a store may be ahead of their journals: then writers wait, so that a kill costs a bounded number of bytes
 * however slow the disk is. Two checkpoints' worth: while one is synced, the next is written.
 */
const MAX_UNSYNCED_BYTES = 128 << 20

/** What all partial blobs of a store hold that no journal has yet. */
export class Unsynced {
  /** For writers in other threads: while its only element is not 0, they wait (`Atomics.wait`) before they write. */
  readonly gate = new Int32Array(new SharedArrayBuffer(4))
  readonly #onFull: () => void
  #bytes = 0
  #full: PromiseWithResolvers<void> | undefined

  /** @param onFull checkpoints whatever is not journaled: nothing else ends the wait */
  constructor(onFull: () => void) {
    this.#onFull = onFull
  }

  get isFull(): boolean {
    return this.#full !== undefined
  }

  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes < MAX_UNSYNCED_BYTES || this.#full !== undefined) return
    this.#full = Promise.withResolvers()
    Atomics.store(this.gate, 0, 1)
    this.#onFull()
  }

  remove(bytes: number): void {
    this.#bytes -= bytes
    if (this.#bytes >= MAX_UNSYNCED_BYTES || this.#full === undefined) return
    this.#full.resolve()
    this.#full = undefined
    Atomics.store(this.gate, 0, 0)
    Atomics.notify(this.gate, 0)
  }

  /** Resolves when more may be written; undefined if that is now. */
  room(): Promise<void> | undefined {
    return this.#full?.promise
  }
}
