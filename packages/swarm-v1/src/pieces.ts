import type { V1Layout } from './layout.ts'

/**
 * Where the bytes of a torrent are stored. The swarm has no files of its own, so that one copy can serve both a store
 * and the swarm. Files are indexes into {@link V1Layout.files}; offsets are bytes within the file.
 */
export interface V1Storage {
  /** Peers get what is here. Default true. */
  readonly upload?: boolean
  /** Whether `[start, end)` can be read. Called for every piece at the start, so it must be cheap. */
  has(file: number, start: number, end: number): boolean
  /** Fills `target` from `offset`; rejects if it cannot fill it completely. */
  read(file: number, offset: number, target: Uint8Array): Promise<void>
  /** Writes bytes of a piece with a matching SHA-1. May be called again for bytes that are already there. */
  write(file: number, offset: number, bytes: Uint8Array): Promise<void>
}

interface Slice {
  readonly file: number
  readonly offset: number
  readonly start: number
  readonly end: number
}

/** The ranges of files in `[offset, offset + length)` of the torrent, in order, without empty and pad files. */
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

/** Reads and writes a {@link V1Storage} by pieces, as a swarm does. */
export class Pieces {
  readonly #layout: V1Layout
  readonly #storage: V1Storage

  constructor(layout: V1Layout, storage: V1Storage) {
    this.#layout = layout
    this.#storage = storage
  }

  get upload(): boolean {
    return this.#storage.upload ?? true
  }

  /** Undefined when the bytes are not there yet. @throws RangeError outside of the piece; errors of the storage as they are. */
  async read(piece: number, offset: number, length: number): Promise<Uint8Array | undefined> {
    if (length < 1 || offset + length > this.#sizeOf(piece)) throw new RangeError(`no such bytes in piece ${piece}`)
    const slices = slicesOf(this.#layout, piece * this.#layout.pieceLength + offset, length)
    if (!slices.every(({ file, offset: at, start, end }) => this.#storage.has(file, at, at + end - start))) {
      return undefined
    }
    const target = new Uint8Array(length)
    for (const { file, offset: at, start, end } of slices) {
      await this.#storage.read(file, at, target.subarray(start, end))
    }
    return target
  }

  /** Writes a whole piece. @throws RangeError for another length; errors of the storage as they are. */
  async write(piece: number, bytes: Uint8Array): Promise<void> {
    if (bytes.length !== this.#sizeOf(piece)) throw new RangeError(`piece ${piece} does not have ${bytes.length} bytes`)
    for (const { file, offset, start, end } of slicesOf(this.#layout, piece * this.#layout.pieceLength, bytes.length)) {
      await this.#storage.write(file, offset, bytes.subarray(start, end))
    }
  }

  /** 0 for a piece that does not exist. */
  #sizeOf(piece: number): number {
    const { pieceLength, pieceCount, sizeBytes } = this.#layout
    if (piece >= pieceCount) return 0
    return Math.min(pieceLength, sizeBytes - piece * pieceLength)
  }
}
