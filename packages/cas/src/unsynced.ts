/**
 * How far the downloads of a store may run ahead of their journals. Beyond it writers wait, so that a kill costs a
 * bounded number of bytes, however slow the disk is. Two checkpoints' worth: one is synced while the next is written.
 */
const MAX_UNSYNCED_BYTES = 128 << 20

/** Counts the bytes of all partial blobs of a store that no journal lists yet. */
export class Unsynced {
  /** For writers in other threads: they wait (`Atomics.wait`) while its only element is not 0. */
  readonly gate = new Int32Array(new SharedArrayBuffer(4))
  readonly #onFull: () => void
  #bytes = 0
  #full: PromiseWithResolvers<void> | undefined

  /** @param onFull checkpoints whatever is in no journal; nothing else ends the wait */
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

  /** Resolves when more may be written; undefined if it already may. */
  room(): Promise<void> | undefined {
    return this.#full?.promise
  }
}
