/** Reads and writes pieces at the owner of the thread. */
export interface PieceCalls {
  /** @returns undefined when the bytes are not there. */
  read(piece: number, offset: number, length: number): Promise<Uint8Array | undefined>
  write(piece: number, bytes: Uint8Array): Promise<void>
}

type Callback<T> = (error: Error | null, value?: T) => void

/** Pieces behind the interface of `abstract-chunk-store`, which webtorrent uses. */
export class Chunks {
  readonly chunkLength: number
  readonly #lengthBytes: number
  readonly #calls: PieceCalls

  constructor(chunkLength: number, lengthBytes: number, calls: PieceCalls) {
    this.chunkLength = chunkLength
    this.#lengthBytes = lengthBytes
    this.#calls = calls
  }

  put(index: number, bytes: Uint8Array, callback: Callback<void> = () => {}): void {
    settle(this.#calls.write(index, bytes), callback)
  }

  get(
    index: number,
    options: { readonly offset?: number; readonly length?: number } | null | Callback<Uint8Array>,
    callback?: Callback<Uint8Array>
  ): void {
    if (typeof options === 'function') settle(this.#read(index, 0), options)
    else settle(this.#read(index, options?.offset ?? 0, options?.length), callback ?? (() => {}))
  }

  close(callback: Callback<void> = () => {}): void {
    queueMicrotask(() => callback(null))
  }

  destroy(callback: Callback<void> = () => {}): void {
    this.close(callback)
  }

  async #read(index: number, offset: number, length = this.chunkLength): Promise<Uint8Array> {
    const rest = Math.min(this.chunkLength, this.#lengthBytes - index * this.chunkLength) - offset
    if (!(rest > 0)) throw new RangeError(`piece ${index} has no byte at ${offset}`)
    const bytes = await this.#calls.read(index, offset, Math.min(length, rest))
    if (bytes === undefined) throw new RangeError(`piece ${index} is not there yet`)
    return bytes
  }
}

function settle<T>(work: Promise<T>, callback: Callback<T>): void {
  work.then(
    (value) => queueMicrotask(() => callback(null, value)),
    (error: unknown) => queueMicrotask(() => callback(error instanceof Error ? error : new Error(String(error))))
  )
}
