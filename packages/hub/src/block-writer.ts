import { writeSync } from 'node:fs'
import { type Clock, systemClock } from '@svc/internal-clock'

/** Bytes collected before a write. The blocks of all connections of a thread fit the CPU's cache, where they are decrypted and written. */
const WRITE_BYTES = 1 << 18

/** Written bytes are reported together up to this many: each report wakes the caller's thread and the hash of the file. */
const REPORT_BYTES = 8 << 20
/** A slow source's bytes are reported this often. */
const REPORT_MS = 100

/** Writing to the file failed; the sink's own `write` will report why. */
export class WriteFailure extends Error {
  override readonly name = 'WriteFailure'

  constructor(cause: unknown) {
    super('the file could not be written', { cause })
  }
}

/**
 * Memory that sockets read into. TLS asks for the rest of the block with every record of 16 KiB, at the same offsets in each block of a
 * range, so the views are kept: making one costs as much as all other work from the socket to here.
 */
class Block {
  readonly bytes = Buffer.allocUnsafeSlow(WRITE_BYTES)
  readonly #rests = new Map<number, Uint8Array>()

  /** From `start` to the end of the block. */
  rest(start: number): Uint8Array {
    let rest = this.#rests.get(start)
    if (rest === undefined) {
      if (this.#rests.size === MAX_RESTS) this.#rests.clear()
      rest = this.bytes.subarray(start)
      this.#rests.set(start, rest)
    }
    return rest
  }
}

/** Enough for records that all have their own offset; small ones share no offsets. */
const MAX_RESTS = 64

/** Blocks are reused, so that nothing is allocated per response. */
const spare: Block[] = []
const MAX_SPARE = 16

let writingMs = 0

/** How long writes have held up this thread, and all its sockets, since it started. */
export const diskMs = (): number => writingMs

export interface BlockTarget {
  readonly fd: number
  readonly start: number
  readonly end: number
  readonly writeGate?: Int32Array | undefined
}

/**
 * Writes the bytes of one range in a worker thread. Sockets read directly into its block; when the block is full it is
 * written, and only then reported, with a few others. Writes are synchronous: a slow disk blocks this thread's sockets, which
 * is the backpressure. So does the sink's gate, for a disk that accepts bytes faster than it stores them.
 *
 * Invariant: `[start, reported)` is written and reported, `[reported, at)` is written; the next `filled` bytes are in
 * the block. After `end` all that is written is reported.
 */
export class BlockWriter {
  readonly #target: BlockTarget
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #onWritten: (start: number, end: number) => void
  readonly #block = spare.pop() ?? new Block()
  #at: number
  #filled = 0
  #limit = 0
  #reported: number
  #reportedAtMs: number

  constructor(
    target: BlockTarget,
    onWritten: (start: number, end: number) => void,
    clock: Pick<Clock, 'monotonic'> = systemClock
  ) {
    this.#target = target
    this.#clock = clock
    this.#reportedAtMs = clock.monotonic()
    this.#onWritten = onWritten
    this.#at = target.start
    this.#reported = target.start
    this.#setLimit()
  }

  get leftBytes(): number {
    return this.#target.end - this.#at - this.#filled
  }

  /** Where to put the next bytes. Not empty while bytes are missing. */
  room(): Uint8Array {
    const { bytes } = this.#block
    return this.#limit === bytes.length ? this.#block.rest(this.#filled) : bytes.subarray(this.#filled, this.#limit)
  }

  /** Records that `count` bytes were put into `room`. @throws WriteFailure */
  took(count: number): void {
    this.#filled += count
    if (this.#filled === this.#limit) this.#flush()
  }

  /** Copies in bytes from elsewhere. @throws WriteFailure */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const count = Math.min(bytes.length - at, this.#limit - this.#filled)
      this.#block.bytes.set(bytes.subarray(at, at + count), this.#filled)
      at += count
      this.took(count)
    }
  }

  /** Writes the rest; the writer must not be used afterwards. @throws WriteFailure */
  end(): void {
    try {
      this.#flush()
    } finally {
      this.#report()
      if (spare.length < MAX_SPARE) spare.push(this.#block)
    }
  }

  #setLimit(): void {
    this.#limit = Math.min(WRITE_BYTES, this.#target.end - this.#at)
  }

  #flush(): void {
    if (this.#filled === 0) return
    const { fd } = this.#target
    const start = this.#at
    const end = start + this.#filled
    const since = this.#clock.monotonic()
    try {
      this.#waitForGate()
      for (let at = 0; at < this.#filled; ) at += writeSync(fd, this.#block.bytes, at, this.#filled - at, start + at)
    } catch (error) {
      throw new WriteFailure(error)
    } finally {
      writingMs += this.#clock.monotonic() - since
    }
    this.#at = end
    this.#filled = 0
    this.#setLimit()
    if (end - this.#reported >= REPORT_BYTES || this.#clock.monotonic() - this.#reportedAtMs >= REPORT_MS)
      this.#report()
  }

  #waitForGate(): void {
    const { writeGate } = this.#target
    if (writeGate === undefined || Atomics.load(writeGate, 0) === 0) return
    // what is written already can be made durable meanwhile
    this.#report()
    while (Atomics.load(writeGate, 0) !== 0) Atomics.wait(writeGate, 0, 1)
  }

  #report(): void {
    const start = this.#reported
    if (start === this.#at) return
    this.#reported = this.#at
    this.#reportedAtMs = this.#clock.monotonic()
    this.#onWritten(start, this.#at)
  }
}
