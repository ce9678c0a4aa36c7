import { writeSync } from 'node:fs'
import type { BlockHashing } from './sink.ts'

/** Bytes collected before a write: more do not stay in the CPU cache, fewer cost more system calls and messages. */
const WRITE_BYTES = 1 << 20

/** Written bytes are reported together up to this many: each report wakes the caller's thread and the hash of the file. */
const REPORT_BYTES = 4 << 20
/** A slow source's bytes are reported this often. */
const REPORT_MS = 100

/** The factory of a hasher, as exported by the sink's module: it produces one hash per block. */
type HasherFactory = (options: unknown, sizeBytes: number) => { update(bytes: Uint8Array): void; digest(): Uint8Array }

/** Writing to the file failed; the sink's own `write` will report why. */
export class WriteFailure extends Error {
  override readonly name = 'WriteFailure'

  constructor(cause: unknown) {
    super('the file could not be written to', { cause })
  }
}

/** Blocks are reused, so that nothing is allocated per response. */
const spare: Buffer[] = []
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
}

/**
 * Writes the bytes of one range in a worker thread. Sockets read directly into its block; when the block is full it is
 * hashed, while still in the CPU cache, and written, and only then reported, with a few others. Writes are synchronous: a slow disk blocks
 * this thread's sockets, which is the backpressure.
 *
 * Invariant: `[start, reported)` is written and reported, `[reported, at)` is written; the next `filled` bytes are in
 * the block. After `end` all that is written is reported.
 */
export class BlockWriter {
  readonly #target: BlockTarget
  readonly #onWritten: (start: number, end: number, hashes: Uint8Array | undefined) => void
  readonly #block = spare.pop() ?? Buffer.allocUnsafeSlow(WRITE_BYTES)
  #at: number
  #filled = 0
  #limit = 0
  #reported: number
  #reportedAtMs = performance.now()
  /** Of what is not reported yet. */
  #unreported: Uint8Array[] = []

  constructor(target: BlockTarget, onWritten: (start: number, end: number, hashes: Uint8Array | undefined) => void) {
    this.#target = target
    this.#onWritten = onWritten
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
    return this.#block.subarray(this.#filled, this.#limit)
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
      this.#block.set(bytes.subarray(at, at + count), this.#filled)
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
    const { hashing, end } = this.#target
    const over = hashing === undefined ? 0 : (this.#at + this.#block.length) % hashing.blockBytes
    this.#limit = Math.min(this.#block.length - over, end - this.#at)
  }

  #flush(): void {
    if (this.#filled === 0) return
    const { fd } = this.#target
    const start = this.#at
    const end = start + this.#filled
    const hashes = this.#hashes(start, end)
    const since = performance.now()
    try {
      for (let at = 0; at < this.#filled; ) at += writeSync(fd, this.#block, at, this.#filled - at, start + at)
    } catch (error) {
      throw new WriteFailure(error)
    } finally {
      writingMs += performance.now() - since
    }
    this.#at = end
    this.#filled = 0
    this.#setLimit()
    if (hashes !== undefined) this.#unreported.push(hashes)
    if (end - this.#reported >= REPORT_BYTES || performance.now() - this.#reportedAtMs >= REPORT_MS) this.#report()
  }

  #report(): void {
    const start = this.#reported
    if (start === this.#at) return
    const { hashing, makeHasher } = this.#target
    // Together they are those of the whole: writes end with a block, but for the range's last one.
    const hashes = hashing === undefined || makeHasher === undefined ? undefined : joined(this.#unreported)
    this.#reported = this.#at
    this.#reportedAtMs = performance.now()
    this.#unreported = []
    this.#onWritten(start, this.#at, hashes)
  }

  /** The hashes of the blocks that lie entirely within `[start, end)`. */
  #hashes(start: number, end: number): Uint8Array | undefined {
    const { hashing, makeHasher, sizeBytes } = this.#target
    if (hashing === undefined || makeHasher === undefined) return undefined
    const { blockBytes, options } = hashing
    const from = Math.min(Math.ceil(start / blockBytes) * blockBytes, sizeBytes)
    const to = Math.max(end === sizeBytes ? end : Math.floor(end / blockBytes) * blockBytes, from)
    if (from >= to) return new Uint8Array(0)
    const hasher = makeHasher(options, to - from)
    hasher.update(this.#block.subarray(from - start, to - start))
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
