import type { V1Layout } from './layout.ts'

/**
 * Where the bytes of a foreign (BitTorrent v1) torrent live. The swarm brings no files of its own: it reads and writes
 * through this, so that one copy serves the store and the foreign swarm alike. Files are indexes into
 * {@link V1Layout.files}; offsets are bytes within the file.
 */
export interface V1Storage {
  /** Whether `[start, end)` can be read. Asked for every piece at the start, so it has to be cheap. */
  has(file: number, start: number, end: number): boolean
  /** Fills `target` from `offset`; rejects when it cannot fill it whole. */
  read(file: number, offset: number, target: Uint8Array): Promise<void>
  /** Bytes of a piece whose SHA-1 was right. May be called again for bytes that are there already. */
  write(file: number, offset: number, bytes: Uint8Array): Promise<void>
}

interface Slice {
  readonly file: number
  readonly offset: number
  readonly start: number
  readonly end: number
}

/** The parts of files that `[offset, offset + length)` of the torrent covers, in order; empty and pad files never
 * appear. */
export function slicesOf(layout: V1Layout, offset: number, length: number): Slice[] {
  const slices: Slice[] = []
  const end = offset + length
  let low = 0
  let high = layout.files.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const file = layout.files[middle]!
    if (file.offset + file.sizeBytes <= offset) low = middle + 1
    else high = middle
  }
  for (let index = low; index < layout.files.length; index++) {
    const file = layout.files[index]!
    if (file.offset >= end) break
    if (file.sizeBytes === 0 || file.pad) continue
    const from = Math.max(offset, file.offset)
    const to = Math.min(end, file.offset + file.sizeBytes)
    slices.push({ file: index, offset: from - file.offset, start: from - offset, end: to - offset })
  }
  return slices
}

type Callback<T> = (error: Error | null, value?: T) => void

/** The storage in the shape of `abstract-chunk-store`, which is what webtorrent talks to. */
export class StorageChunks {
  readonly chunkLength: number
  readonly #layout: Promise<V1Layout>
  readonly #storage: Promise<V1Storage>

  constructor(chunkLength: number, layout: Promise<V1Layout>, storage: Promise<V1Storage>) {
    this.chunkLength = chunkLength
    this.#layout = layout
    this.#storage = storage
  }

  put(index: number, bytes: Uint8Array, callback: Callback<void> = () => {}): void {
    settle(this.#put(index, bytes), callback)
  }

  get(
    index: number,
    options: { readonly offset?: number; readonly length?: number } | null | Callback<Uint8Array>,
    callback?: Callback<Uint8Array>
  ): void {
    if (typeof options === 'function') settle(this.#get(index, {}), options)
    else settle(this.#get(index, options ?? {}), callback ?? (() => {}))
  }

  close(callback: Callback<void> = () => {}): void {
    queueMicrotask(() => callback(null))
  }

  destroy(callback: Callback<void> = () => {}): void {
    this.close(callback)
  }

  async #put(index: number, bytes: Uint8Array): Promise<void> {
    const storage = await this.#storage
    const layout = await this.#layout
    for (const slice of slicesOf(layout, index * layout.pieceLength, bytes.length)) {
      await storage.write(slice.file, slice.offset, bytes.subarray(slice.start, slice.end))
    }
  }

  async #get(index: number, options: { readonly offset?: number; readonly length?: number }): Promise<Uint8Array> {
    const storage = await this.#storage
    const layout = await this.#layout
    const from = index * layout.pieceLength + (options.offset ?? 0)
    const pieceEnd = Math.min((index + 1) * layout.pieceLength, layout.sizeBytes)
    const length = Math.min(options.length ?? Number.POSITIVE_INFINITY, pieceEnd - from)
    if (!(length > 0)) throw new RangeError(`piece ${index} has no byte at ${options.offset ?? 0}`)
    const slices = slicesOf(layout, from, length)
    if (!slices.every(({ file, offset, start, end }) => storage.has(file, offset, offset + end - start))) {
      throw new RangeError(`piece ${index} is not there yet`)
    }
    const target = new Uint8Array(length)
    for (const slice of slices) await storage.read(slice.file, slice.offset, target.subarray(slice.start, slice.end))
    return target
  }
}

function settle<T>(work: Promise<T>, callback: Callback<T>): void {
  work.then(
    (value) => queueMicrotask(() => callback(null, value)),
    (error: unknown) => queueMicrotask(() => callback(error instanceof Error ? error : new Error(String(error))))
  )
}
