import { ByteRangeSet, gapsOf } from '@svc/internal-byte-ranges'
import { abortError, CasError, shortPart } from './errors.ts'
import type { HashThread, HashThreads } from './hash-threads.ts'
import type { BlockAttachment, BlockShape } from './store.ts'

/** Blocks until this many bytes can be read in one message, except at the end. */
const STEP_BYTES = 2 << 20
const MAX_STEP_BYTES = 64 << 20

interface BlockRead {
  readonly start: number
  readonly end: number
  /**
   * Ranges that were forgotten, or whose hashes the writer supplied, since the read began. Its results for these are
   * discarded.
   */
  readonly voided: ByteRangeSet
  readonly thread: HashThread
  readonly session: number
  readonly done: Promise<void>
}

/**
 * The hashes of a part file's blocks. A writer may supply the hashes of what it writes; all other blocks are read back
 * in a worker thread.
 *
 * Invariants: every fully written block is either known, in `#lacking`, or in the current read; at most one read runs
 * at a time; a block's hash is that of the bytes declared as written last.
 */
export class BlockHashes {
  readonly #threads: HashThreads
  readonly #fd: number
  readonly #attachment: BlockAttachment
  readonly #sizeBytes: number
  readonly #hashes: Uint8Array
  readonly #lacking = new ByteRangeSet()
  #reading: BlockRead | undefined
  #error: unknown
  #stopped = false

  constructor(threads: HashThreads, fd: number, attachment: BlockAttachment, sizeBytes: number) {
    const { blockBytes, hashBytes } = attachment.blocks
    this.#threads = threads
    this.#fd = fd
    this.#attachment = attachment
    this.#sizeBytes = sizeBytes
    this.#hashes = new Uint8Array(Math.ceil(sizeBytes / blockBytes) * hashBytes)
  }

  get name(): string {
    return this.#attachment.name
  }

  /** @throws CasError `E_RANGE` unless `hashes` has one hash for each whole block in `[start, end)` */
  check(start: number, end: number, hashes: Uint8Array | undefined): void {
    if (hashes === undefined) return
    const { blockBytes, hashBytes } = this.#attachment.blocks
    const [from, to] = wholeBlocks(this.#attachment.blocks, this.#sizeBytes, start, end)
    const count = Math.ceil((to - from) / blockBytes)
    if (hashes.length === count * hashBytes) return
    throw new CasError('E_RANGE', `[${start}, ${end}) has ${count} whole blocks, hashes came for another number`)
  }

  /**
   * Records that `[start, end)` was written. `hashes` (see {@link check}) are those of its whole blocks, concatenated;
   * without them the blocks are read back. `written` covers everything written so far.
   * @throws CasError `E_RANGE` for the wrong number of hashes
   */
  written(start: number, end: number, hashes: Uint8Array | undefined, written: ByteRangeSet): void {
    const { blocks } = this.#attachment
    const [from, to] = wholeBlocks(blocks, this.#sizeBytes, start, end)
    if (hashes === undefined) this.#lacking.add(from, to)
    else {
      this.#keep(from, hashes)
      this.#lacking.remove(from, to)
      this.#reading?.voided.add(from, to)
    }
    // A block at either edge may now be complete, together with bytes written earlier.
    for (const at of [start, end]) {
      const first = Math.floor(at / blocks.blockBytes) * blocks.blockBytes
      const last = Math.min(first + blocks.blockBytes, this.#sizeBytes)
      if (first < at && at < last && written.contains(first, last)) this.#lacking.add(first, last)
    }
    if (this.#lacking.totalBytes >= STEP_BYTES) this.#read()
  }

  /** Forgets the hashes of `[start, end)`. */
  forget(start: number, end: number): void {
    const { blockBytes } = this.#attachment.blocks
    const from = Math.floor(start / blockBytes) * blockBytes
    const to = Math.min(Math.ceil(end / blockBytes) * blockBytes, this.#sizeBytes)
    this.#lacking.remove(from, to)
    this.#reading?.voided.add(from, to)
  }

  /**
   * All hashes, once the whole file is written; reads back the missing ones. @throws the error that a read failed with
   */
  async finish(signal: AbortSignal): Promise<Uint8Array> {
    const stop = (): void => {
      this.#error ??= abortError(signal)
      this.#drop()
    }
    if (signal.aborted) throw abortError(signal)
    signal.addEventListener('abort', stop)
    try {
      for (;;) {
        // When one read ends, the next may already have begun.
        while (this.#reading !== undefined) await this.#reading.done
        if (this.#error !== undefined) throw this.#error
        if (this.#lacking.totalBytes === 0) return this.#hashes
        this.#read()
      }
    } finally {
      this.#error = undefined
      signal.removeEventListener('abort', stop)
    }
  }

  /** Resolves when no thread uses the descriptor any longer. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#drop()
    while (this.#reading !== undefined) await this.#reading.done
  }

  #keep(start: number, hashes: Uint8Array): void {
    const { blockBytes, hashBytes } = this.#attachment.blocks
    this.#hashes.set(hashes, (start / blockBytes) * hashBytes)
  }

  #drop(): void {
    const reading = this.#reading
    if (reading !== undefined) void reading.thread.call('drop', { session: reading.session }).catch(() => undefined)
  }

  #read(): void {
    if (this.#reading !== undefined || this.#error !== undefined || this.#stopped) return
    const next = this.#lacking.toRanges()[0]
    if (next === undefined) return
    const start = next[0]
    const { blockBytes } = this.#attachment.blocks
    const end = Math.min(next[1], start + Math.max(1, Math.floor(MAX_STEP_BYTES / blockBytes)) * blockBytes)
    this.#lacking.remove(start, end)
    const { thread, release } = this.#threads.take()
    const session = this.#threads.nextSession()
    const voided = new ByteRangeSet()
    const spec = { flat: false, attachments: [this.#attachment], sizeBytes: end - start }
    const done = thread
      .call('run', { session, spec, fd: this.#fd, start, end, progress: false })
      .then(({ sizeBytes, attachments }) => {
        if (sizeBytes !== end - start) throw shortPart()
        this.#take(start, end, voided, attachments[this.name]!)
      })
      .catch(async (error: unknown) => {
        for (const [from, to] of gapsOf(voided.toRanges(), start, end)) this.#lacking.add(from, to)
        this.#error ??= error
        await thread.call('drop', { session }).catch(() => undefined)
      })
      .finally(() => {
        release()
        this.#reading = undefined
        if (this.#lacking.totalBytes >= STEP_BYTES) this.#read()
      })
    this.#reading = { start, end, voided, thread, session, done }
  }

  #take(start: number, end: number, voided: ByteRangeSet, hashes: Uint8Array): void {
    const { blockBytes, hashBytes } = this.#attachment.blocks
    for (const [from, to] of gapsOf(voided.toRanges(), start, end)) {
      const first = (from - start) / blockBytes
      this.#keep(from, hashes.subarray(first * hashBytes, Math.ceil((to - start) / blockBytes) * hashBytes))
    }
  }
}

/** The range of the blocks that lie entirely within `[start, end)`; a file's last block may be short. */
function wholeBlocks(
  { blockBytes }: BlockShape,
  sizeBytes: number,
  start: number,
  end: number
): readonly [start: number, end: number] {
  const from = Math.ceil(start / blockBytes) * blockBytes
  const to = end === sizeBytes ? end : Math.floor(end / blockBytes) * blockBytes
  return [Math.min(from, sizeBytes), Math.max(to, Math.min(from, sizeBytes))]
}
