import type { V1Layout } from './layout.ts'

/**
 * Where the bytes of a torrent live. The swarm brings no files of its own: it reads and writes through this, so that one
 * copy serves a store and the swarm alike. Files are indexes into
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

/** A {@link V1Storage} by pieces, which is how a swarm reads and writes. */
export class Pieces {
  readonly #layout: V1Layout
  readonly #storage: V1Storage

  constructor(layout: V1Layout, storage: V1Storage) {
    this.#layout = layout
    this.#storage = storage
  }

  /** @returns undefined where the bytes are not there yet. @throws RangeError outside of the piece; what the storage throws. */
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

  /** A whole piece. @throws RangeError for another length; what the storage throws. */
  async write(piece: number, bytes: Uint8Array): Promise<void> {
    if (bytes.length !== this.#sizeOf(piece)) throw new RangeError(`piece ${piece} has not ${bytes.length} bytes`)
    for (const { file, offset, start, end } of slicesOf(this.#layout, piece * this.#layout.pieceLength, bytes.length)) {
      await this.#storage.write(file, offset, bytes.subarray(start, end))
    }
  }

  /** 0 for a piece that there is not. */
  #sizeOf(piece: number): number {
    const { pieceLength, pieceCount, sizeBytes } = this.#layout
    if (piece >= pieceCount) return 0
    return Math.min(pieceLength, sizeBytes - piece * pieceLength)
  }
}
