import { read as readCallback, readSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { QuickReads } from '@svc/internal-files'
import type { BufferPool } from './buffer-pool.ts'

/** A reader must take a chunk within this time: a floor of about 9 KB/s, far below any honest one. */
const SLOW_READER_TIMEOUT_MS = 120_000

/** Bytes that may go out over time, shared with others that send (a token bucket). */
export interface SendBudget {
  /** Milliseconds until something may be sent; 0: now. */
  waitMs(nowMs: number): number
  spend(bytes: number): void
}

/** What goes out at once under a budget. */
const BUDGET_CHUNK_BYTES = 64 << 10

/**
 * What is in the page cache is read on this thread, in pieces that stay in the processor's cache on their way to the socket: measured, it
 * costs a third less than through the thread pool. A cold disk turns that off by itself, see `QuickReads`.
 */
const quickReads = new QuickReads()
const QUICK_BYTES = 256 << 10
/** Every so many reads one goes through the pool all the same, so that a client that takes everything at once lets others come first. */
const QUICK_IN_A_ROW = 16

/** One buffer is being written to the socket while the next one is read. */
const BUFFERS = 2

export interface PumpOptions {
  readonly pool: BufferPool
  /** Absent: as fast as the reader takes it. */
  readonly budget?: SendBudget | undefined
  readonly slowReaderTimeoutMs?: number | undefined
}

/**
 * Sends bytes `[offset, end)` of a blob as the body of a response whose head is written.
 *
 * Each buffer goes round: `take` → `#read` from the file → `#write` to the socket → back to `#free` when the kernel has taken it
 * (only `write`'s callback says so). `#advance` starts whatever can be started next, and is called after each step. The pump is
 * over when the response has ended, its connection is gone, or a read failed: `#settle`, once.
 *
 * Invariants: at most one read is under way, so bytes are written in order; a buffer is in exactly one of `#free`, the read, or
 * a write; nothing starts after `#connectionGone` or `#settled`.
 */
export class BlobPump {
  readonly #response: ServerResponse
  readonly #blob: BlobReader
  readonly #options: PumpOptions
  readonly #slowMs: number
  readonly #end: number
  #offset: number

  readonly #free: Buffer[] = []
  #buffersTaken = 0
  #reading = false
  #quickInARow = 0
  #writesPending = 0
  #finishing = false

  #connectionGone = false
  #settled = false
  #slowTimer: NodeJS.Timeout | undefined
  #budgetTimer: NodeJS.Timeout | undefined
  #resolve: () => void = () => undefined
  #reject: (error: Error) => void = () => undefined

  constructor(response: ServerResponse, blob: BlobReader, start: number, end: number, options: PumpOptions) {
    this.#response = response
    this.#blob = blob
    this.#offset = start
    this.#end = end
    this.#options = options
    this.#slowMs = options.slowReaderTimeoutMs ?? SLOW_READER_TIMEOUT_MS
  }

  /** Resolves when the response has ended or its connection is gone; rejects when the blob cannot be read. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      if (this.#response.destroyed || this.#response.closed) return this.#settle()
      this.#slowTimer = setTimeout(() => this.#response.destroy(), this.#slowMs)
      this.#response.once('close', this.#onClose)
      this.#advance()
    })
  }

  #advance(): void {
    if (this.#settled || this.#connectionGone || this.#reading || this.#budgetTimer !== undefined) return
    if (this.#offset >= this.#end) return this.#finish()
    const waitMs = this.#options.budget?.waitMs(performance.now()) ?? 0
    if (waitMs > 0) return this.#waitForBudget(waitMs)
    const buffer = this.#takeBuffer()
    if (buffer !== undefined) this.#read(buffer)
  }

  #takeBuffer(): Buffer | undefined {
    const free = this.#free.pop()
    if (free !== undefined || this.#buffersTaken === BUFFERS) return free
    this.#buffersTaken++
    return this.#options.pool.take()
  }

  #waitForBudget(waitMs: number): void {
    this.#budgetTimer = setTimeout(
      () => {
        this.#budgetTimer = undefined
        // the upload limit causes this wait, not the reader
        this.#slowTimer?.refresh()
        this.#advance()
      },
      Math.min(waitMs, this.#slowMs / 2)
    )
  }

  #read(buffer: Buffer): void {
    const { budget } = this.#options
    const most = budget === undefined ? buffer.length : Math.min(buffer.length, BUDGET_CHUNK_BYTES)
    const { fd } = this.#blob
    const quick = fd !== undefined && quickReads.allowed && ++this.#quickInARow < QUICK_IN_A_ROW
    const length = Math.min(quick ? Math.min(most, QUICK_BYTES) : most, this.#end - this.#offset)
    budget?.spend(length)
    if (quick) return this.#readHere(fd, buffer, length)
    this.#quickInARow = 0
    this.#reading = true
    if (fd !== undefined) {
      readCallback(fd, buffer, 0, length, this.#offset, (error, count) => this.#onRead(buffer, error, count))
    } else {
      this.#blob.read(buffer.subarray(0, length), this.#offset).then(
        (count) => this.#onRead(buffer, null, count),
        (error: Error) => this.#onRead(buffer, error, 0)
      )
    }
  }

  #readHere(fd: number, buffer: Buffer, length: number): void {
    let count: number
    try {
      count = quickReads.timed(() => readSync(fd, buffer, 0, length, this.#offset))
    } catch (error) {
      return this.#onRead(buffer, error as Error, 0)
    }
    this.#onRead(buffer, null, count)
  }

  #onRead(buffer: Buffer, error: Error | null, count: number): void {
    this.#reading = false
    if (this.#connectionGone || error !== null || count === 0) {
      this.#free.push(buffer)
      if (this.#connectionGone) return this.#settle()
      return this.#settle(error ?? new Error(`the file of ${this.#blob.digest} is shorter than its size`))
    }
    this.#offset += count
    this.#write(buffer, count)
    this.#advance()
  }

  #write(buffer: Buffer, count: number): void {
    this.#writesPending++
    this.#response.write(count === buffer.length ? buffer : buffer.subarray(0, count), (failure) => {
      this.#writesPending--
      if (this.#settled) return this.#options.pool.give(buffer)
      this.#slowTimer?.refresh()
      // on a failure the 'close' event follows
      this.#free.push(buffer)
      if (!failure) this.#advance()
    })
  }

  #finish(): void {
    if (this.#writesPending > 0 || this.#finishing) return
    this.#finishing = true
    this.#response.end(() => this.#settle())
  }

  /**
   * The caller closes the descriptor as soon as this settles, so a read under way is awaited: its number could be reused. A buffer
   * under an abandoned write goes back when the socket says that it is done with it, as with any other write.
   */
  readonly #onClose = (): void => {
    this.#connectionGone = true
    if (!this.#reading) this.#settle()
  }

  #settle(error?: Error): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#slowTimer)
    clearTimeout(this.#budgetTimer)
    this.#response.off('close', this.#onClose)
    for (const buffer of this.#free) this.#options.pool.give(buffer)
    if (error === undefined) return this.#resolve()
    this.#response.destroy()
    this.#reject(error)
  }
}
