import { writeSync } from 'node:fs'
import { type Clock, systemClock } from '@svc/internal-clock'
import type { BlockHashing } from './sink.ts'

/** Bytes collected before a write: the blocks of a thread's connections together stay in its CPU's cache, where they are decrypted, hashed and written. */
const WRITE_BYTES = 1 << 18

/** Written bytes are reported together up to this many: each report wakes the caller's thread and the hash of the file. */
const REPORT_BYTES = 8 << 20
/** A slow source's bytes are reported this often. */
const REPORT_MS = 100

/** The factory of a hasher, as exported by the sink's module: it produces one hash per block. */
type HasherFactory = (options: unknown, sizeBytes: number) => { update(bytes: Uint8Array): void; digest(): Uint8Array }

/** Writing to the file failed; the sink's own `write` will report why. */
export class WriteFailure extends Error {
  override readonly name = 'WriteFailure'

  constructor(cause: unknown) {
    super('the file could not be written', { cause })
  }
}

/**
 * Memory that sockets read into. TLS asks for the rest of it with every record of 16 KiB, at the same offsets in each block of a range, so that its views
 * are kept: making one costs as much as the rest of the way from the socket to here.
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
  readonly sizeBytes: number
  readonly hashing: BlockHashing | undefined
  readonly makeHasher: HasherFactory | undefined
  readonly writeGate?: Int32Array | undefined
}

/**
 * Writes the bytes of one range in a worker thread. Sockets read directly into its block; when the block is full it is
 * hashed, while still in the CPU cache, and written, and only then reported, with a few others. Writes are synchronous: a slow disk blocks
 * this thread's sockets, which is the backpressure. So does the gate of the sink, for a disk that takes bytes sooner than it keeps them.
 *
 * Invariant: `[start, reported)` is written and reported, `[reported, at)` is written; the next `filled` bytes are in
 * the block. After `end` all that is written is reported.
 */
export class BlockWriter {
  readonly #target: BlockTarget
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #onWritten: (start: number, end: number, hashes: Uint8Array | undefined) => void
  readonly #hashing: (BlockHashing & { readonly makeHasher: HasherFactory }) | undefined
  readonly #block = spare.pop() ?? new Block()
  #at: number
  #filled = 0
  #limit = 0
  #reported: number
  #reportedAtMs: number
  /** Of what is not reported yet. */
  #unreported: Uint8Array[] = []

  constructor(
    target: BlockTarget,
    onWritten: (start: number, end: number, hashes: Uint8Array | undefined) => void,
    clock: Pick<Clock, 'monotonic'> = systemClock
  ) {
    this.#target = target
    this.#clock = clock
    this.#reportedAtMs = clock.monotonic()
    this.#onWritten = onWritten
    const { hashing, makeHasher } = target
    // Larger blocks are never in one write: whoever wants their hashes reads them back.
    if (hashing !== undefined && makeHasher !== undefined && hashing.blockBytes <= WRITE_BYTES)
      this.#hashing = { ...hashing, makeHasher }
    this.#at = target.start
    this.#reported = target.start
    this.#setLimit()
  }

  /** Bytes that are still missing. */
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

  /** Ends the block at a boundary of the hasher's blocks, so that as few of those as possible span two writes. */
  #setLimit(): void {
    const over = this.#hashing === undefined ? 0 : (this.#at + WRITE_BYTES) % this.#hashing.blockBytes
    this.#limit = Math.min(WRITE_BYTES - over, this.#target.end - this.#at)
  }

  #flush(): void {
    if (this.#filled === 0) return
    const { fd } = this.#target
    const start = this.#at
    const end = start + this.#filled
    const hashes = this.#hashes(start, end)
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
    if (hashes !== undefined) this.#unreported.push(hashes)
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
    // Together they are those of the whole: writes end with a block, but for the range's last one.
    const hashes = this.#hashing === undefined ? undefined : joined(this.#unreported)
    this.#reported = this.#at
    this.#reportedAtMs = this.#clock.monotonic()
    this.#unreported = []
    this.#onWritten(start, this.#at, hashes)
  }

  /** The hashes of the blocks that lie entirely within `[start, end)`. */
  #hashes(start: number, end: number): Uint8Array | undefined {
    if (this.#hashing === undefined) return undefined
    const { blockBytes, options, makeHasher } = this.#hashing
    const { sizeBytes } = this.#target
    const from = Math.min(Math.ceil(start / blockBytes) * blockBytes, sizeBytes)
    const to = Math.max(end === sizeBytes ? end : Math.floor(end / blockBytes) * blockBytes, from)
    if (from >= to) return new Uint8Array(0)
    const hasher = makeHasher(options, to - from)
    hasher.update(this.#block.bytes.subarray(from - start, to - start))
    return hasher.digest()
  }
}

/** Not from Node's pool, all of which a message would copy. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
