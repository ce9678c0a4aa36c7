import { formatPieceHeader, PIECE_HEADER_BYTES } from '../wire/messages.ts'

/** Bytes of blocks in a frame: read and written at once, they are still in the CPU's cache when the socket takes them. */
export const FRAME_BLOCK_BYTES = 262_144
const SMALLEST_BLOCK_BYTES = 16_384
const FRAME_BYTES = FRAME_BLOCK_BYTES + (FRAME_BLOCK_BYTES / SMALLEST_BLOCK_BYTES) * PIECE_HEADER_BYTES
/** Kept for the next sends. */
const MAX_SPARE = 4

/**
 * The memory of one write: the messages of several blocks, each behind its head. Measured: a write of sixteen blocks
 * and their heads as a list takes twice the CPU of the same bytes in one piece.
 */
export class Frame {
  readonly #bytes = Buffer.allocUnsafeSlow(FRAME_BYTES)
  /** By their position: mostly the same blocks are sent again and again. */
  readonly #views = new Map<number, Uint8Array>()
  #filled = 0
  /** Bytes of blocks. */
  blockBytes = 0

  /** Whether a block of this length fits. */
  holds(length: number): boolean {
    return this.#filled + PIECE_HEADER_BYTES + length <= FRAME_BYTES
  }

  /** Writes the head of a block that `holds`; returns where its bytes belong. */
  add(piece: number, begin: number, length: number): Uint8Array {
    formatPieceHeader(piece, begin, length, this.#bytes, this.#filled)
    const at = this.#filled + PIECE_HEADER_BYTES
    this.#filled = at + length
    this.blockBytes += length
    const kept = this.#views.get(at)
    if (kept !== undefined && kept.length === length) return kept
    const view = this.#bytes.subarray(at, at + length)
    // Bounded, since the peer chooses where its blocks begin and end.
    if (this.#views.size < 64) this.#views.set(at, view)
    return view
  }

  /** What is to be sent. */
  get message(): Uint8Array {
    return this.#filled === FRAME_BYTES ? this.#bytes : this.#bytes.subarray(0, this.#filled)
  }

  clear(): void {
    this.#filled = 0
    this.blockBytes = 0
  }
}

/** Memory of uploads that nobody uses. Who sends takes one, and gives it back when its bytes have been sent or copied. */
export class Spares<T> {
  readonly #spare: T[] = []
  readonly #make: () => T
  #taken = 0

  constructor(make: () => T) {
    this.#make = make
  }

  /** How many somebody uses now. */
  get taken(): number {
    return this.#taken
  }

  /** The one used last: the CPU's cache may still have it. */
  take(): T {
    this.#taken += 1
    return this.#spare.pop() ?? this.#make()
  }

  give(used: T): void {
    this.#taken -= 1
    if (this.#spare.length < MAX_SPARE) this.#spare.push(used)
  }

  trim(): void {
    this.#spare.length = 0
  }
}
