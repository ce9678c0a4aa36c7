import { formatPieceHeader, PIECE_HEADER_BYTES } from '../wire/messages.ts'

/** Bytes of blocks in a frame: read and written at once, they are still in the CPU's cache when the socket takes them. */
export const FRAME_BLOCK_BYTES = 262_144
const SMALLEST_BLOCK_BYTES = 16_384
const FRAME_BYTES = FRAME_BLOCK_BYTES + (FRAME_BLOCK_BYTES / SMALLEST_BLOCK_BYTES) * PIECE_HEADER_BYTES
/** Kept for the next sends. */
const MAX_SPARE = 4

/** The memory of one write: blocks, each behind its head. Written as a list, sixteen take twice the CPU (measured). */
export class Frame {
  readonly #bytes = Buffer.allocUnsafeSlow(FRAME_BYTES)
  #filled = 0
  blockBytes = 0

  holds(length: number): boolean {
    return this.#filled + PIECE_HEADER_BYTES + length <= FRAME_BYTES
  }

  /** Writes the head of a block that `holds`; returns where its bytes belong. */
  add(piece: number, begin: number, length: number): Uint8Array {
    formatPieceHeader(piece, begin, length, this.#bytes, this.#filled)
    const at = this.#filled + PIECE_HEADER_BYTES
    this.#filled = at + length
    this.blockBytes += length
    return this.#bytes.subarray(at, at + length)
  }

  get message(): Uint8Array {
    return this.#filled === FRAME_BYTES ? this.#bytes : this.#bytes.subarray(0, this.#filled)
  }

  /** Memory at the end of an empty frame, for at most {@link FRAME_BLOCK_BYTES}; `add` in order overwrites none too early. */
  tail(bytes: number): Uint8Array {
    return this.#bytes.subarray(FRAME_BYTES - bytes)
  }

  clear(): void {
    this.#filled = 0
    this.blockBytes = 0
  }
}

/** Unused frames. A sender takes one, and gives it back when its bytes have been sent or copied. */
export class FramePool {
  readonly #spare: Frame[] = []

  /** An empty frame: the spare one that was used last, which the CPU's cache may still have. */
  acquire(): Frame {
    const frame = this.#spare.pop() ?? new Frame()
    frame.clear()
    return frame
  }

  release(used: Frame): void {
    if (this.#spare.length < MAX_SPARE) this.#spare.push(used)
  }

  trim(): void {
    this.#spare.length = 0
  }
}
