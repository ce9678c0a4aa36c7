import { read as readCallback, readSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { Writable } from 'node:stream'
import type { BlobReader } from '@svc/cas'
import { type Clock, systemClock } from '@svc/internal-clock'
import { loopBudget, processWide } from '@svc/internal-concurrency'
import { QuickReads } from '@svc/internal-files'
import type { TokenBucket } from '@svc/internal-net'
import type { BufferPool } from './buffer-pool.ts'

/** A client has to accept a chunk within this time: a floor of about 9 KB/s, far below any honest one. */
const SLOW_READER_TIMEOUT_MS = 120_000

/** A limit of bytes over time that is shared with other senders. */
export type SendBudget = Pick<TokenBucket, 'waitMs' | 'spend'>

/** Bytes sent at once under a budget. */
const BUDGET_CHUNK_BYTES = 64 << 10

/**
 * Bytes in the page cache are read on this thread, in chunks that stay in the CPU cache on their way to the socket:
 * measured, that costs a third less than through the thread pool. With a cold disk it stops, see `QuickReads`.
 */
const quickReads = processWide('blob-reads', () => new QuickReads())
/** A little less than the send buffer of a Unix socket: the system takes such a chunk at once. */
const QUICK_BYTES = 192 << 10

/** One buffer is written to the socket while the next one is read. */
const BUFFERS = 2

export interface PumpOptions {
  readonly pool: BufferPool
  /** Absent: as fast as the client accepts it. */
  readonly budget?: SendBudget | undefined
  /** The budget's; default: the system's. */
  readonly clock?: Clock
  /** Send the head without waiting for the first bytes, which may be slow. */
  readonly headFirst?: boolean
}

/**
 * Sends bytes `[start, end)` of a blob as the body of a response whose head is written. Resolves when the response has ended
 * or its connection is gone; rejects, with the connection cut, when the blob cannot be read.
 *
 * The caller closes the descriptor as soon as this settles, so that a read is always awaited: its number could be reused.
 */
export async function pumpBlob(
  response: ServerResponse,
  blob: BlobReader,
  start: number,
  end: number,
  options: PumpOptions
): Promise<void> {
  if (response.destroyed || response.closed) return
  const { budget, clock = systemClock } = options
  const { fd } = blob
  const body = new ResponseBody(response, options.pool, options.headFirst === true)
  try {
    for (let offset = start; offset < end; ) {
      // wait for the upload limit, then for the client to have accepted an earlier chunk.
      let waitMs = budget?.waitMs(clock.monotonic()) ?? 0
      while (waitMs > 0 && !body.isGone) {
        await body.pause(clock, Math.min(waitMs, SLOW_READER_TIMEOUT_MS / 2))
        waitMs = budget?.waitMs(clock.monotonic()) ?? 0
      }
      while (!body.hasBuffer && !body.isGone) await body.change()
      if (body.isGone) return

      // read the next chunk, here if that is quick.
      const quick = fd !== undefined && quickReads.allowed
      if (loopBudget.isOver('blobs')) {
        await loopBudget.next('blobs')
        continue
      }
      const buffer = body.buffer()
      const mostBytes = Math.min(
        quick ? QUICK_BYTES : buffer.length,
        budget === undefined ? buffer.length : BUDGET_CHUNK_BYTES
      )
      const length = Math.min(mostBytes, end - offset)
      budget?.spend(length)
      const count = quick
        ? quickReads.timed(() => readSync(fd, buffer, 0, length, offset))
        : await read(blob, buffer, length, offset)
      if (body.isGone) return

      // send it, and read on meanwhile.
      if (count === 0) throw new Error(`the file of ${blob.digest} is shorter than its size`)
      body.write(count)
      offset += count
    }
    while (body.writesPending > 0 && !body.isGone) await body.change()
    if (!body.isGone) await body.end()
  } catch (error) {
    if (body.isGone) return
    response.destroy()
    throw error
  } finally {
    body.release()
  }
}

function read(blob: BlobReader, buffer: Buffer, length: number, offset: number): Promise<number> {
  const { fd } = blob
  if (fd === undefined) return blob.read(buffer.subarray(0, length), offset)
  return new Promise((resolve, reject) => {
    readCallback(fd, buffer, 0, length, offset, (error, count) => (error === null ? resolve(count) : reject(error)))
  })
}

/**
 * The socket's side of a pump. A client that accepts nothing for {@link SLOW_READER_TIMEOUT_MS} is disconnected. The body, whose length is
 * announced, goes to the socket itself, behind the head: measured, `response.write` costs a sixth of the CPU of a blob,
 * most of it for holding each chunk back until the next tick. Invariant: a buffer is free, or in the pump's hand, or
 * being written; after `release` it goes back to the pool as soon as the socket no longer needs it.
 */
class ResponseBody {
  readonly #response: ServerResponse
  readonly #out: Writable
  readonly #pool: BufferPool
  readonly #slowTimer: NodeJS.Timeout
  readonly #free: Buffer[] = []
  #buffersTaken = 0
  #inHand: Buffer | undefined
  #released = false
  /** The head leaves with the first chunk. */
  #headHeld: boolean
  #wake: () => void = () => undefined
  writesPending = 0
  isGone = false

  constructor(response: ServerResponse, pool: BufferPool, headFirst: boolean) {
    this.#response = response
    this.#pool = pool
    // a slow read is not the client's fault
    this.#slowTimer = setTimeout(
      () => (this.writesPending > 0 ? response.destroy() : this.#slowTimer.refresh()),
      SLOW_READER_TIMEOUT_MS
    )
    response.once('close', this.#onClose)
    this.#out = response.socket ?? response
    this.#headHeld = !headFirst
    if (this.#headHeld) this.#out.cork()
    response.flushHeaders()
  }

  readonly #onClose = (): void => {
    this.isGone = true
    this.#wake()
  }

  /** Resolves with the next thing that happens: a write is done, or the connection is gone. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Waits because of the upload limit, which is not the client's fault. */
  async pause(clock: Clock, ms: number): Promise<void> {
    const timer = clock.after(ms, () => this.#wake())
    await this.change()
    timer.cancel()
    this.#slowTimer.refresh()
  }

  get hasBuffer(): boolean {
    return this.#free.length > 0 || this.#buffersTaken < BUFFERS
  }

  /** A buffer to fill, for the next `write`. */
  buffer(): Buffer {
    this.#inHand = this.#free.pop()
    if (this.#inHand === undefined) {
      this.#buffersTaken++
      this.#inHand = this.#pool.acquire()
    }
    return this.#inHand
  }

  /** Sends the first `count` bytes of the buffer. */
  write(count: number): void {
    const buffer = this.#inHand!
    this.#inHand = undefined
    if (this.writesPending++ === 0) this.#slowTimer.refresh()
    this.#out.write(count === buffer.length ? buffer : buffer.subarray(0, count), (failure) => {
      this.writesPending--
      if (this.#released) return this.#pool.release(buffer)
      this.#slowTimer.refresh()
      this.#free.push(buffer)
      // a failure is followed by 'close'
      if (!failure) this.#wake()
    })
    if (this.#headHeld) this.#out.uncork()
    this.#headHeld = false
  }

  /** Resolves when the response has ended, or its connection is gone. */
  end(): Promise<void> {
    const ended = this.change()
    this.#response.end(this.#wake)
    return ended
  }

  release(): void {
    this.#released = true
    clearTimeout(this.#slowTimer)
    this.#response.off('close', this.#onClose)
    if (this.#inHand !== undefined) this.#free.push(this.#inHand)
    for (const buffer of this.#free) this.#pool.release(buffer)
  }
}
