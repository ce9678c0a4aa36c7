import type { Clock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import type { TorrentLayout } from '@svc/metainfo'
import type { Emit } from '../events.ts'
import { guarded, reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { readFully, type TorrentStorage } from '../storage.ts'
import { OUR_REQUEST_QUEUE } from '../wire/extensions.ts'
import { type BlockRef, formatBlockRef, MESSAGE } from '../wire/messages.ts'
import { FRAME_BLOCK_BYTES, type Frame, type FramePool } from './frame.ts'
import type { LimitedSender, UploadLimiter } from './limiter.ts'

interface QueuedBlock {
  readonly block: BlockRef
  readonly fileIndex: number
  /** In the file. */
  readonly offset: number
}

/** Bytes that a thread reads for requests at the head of the queue, one after the other in one file. */
interface Run {
  readonly fileIndex: number
  readonly start: number
  /** At the end of `frame`. */
  readonly bytes: Uint8Array
  readonly frame: Frame
}

export interface UploadContext {
  readonly env: { readonly clock: Clock; readonly frames: FramePool; readonly limiter: UploadLimiter }
  readonly layout: TorrentLayout
  readonly options: { readonly storage: TorrentStorage }
  readonly emit: Emit<'file-lost' | 'sent'>
}

/** Exact for all torrents of less than 2 million pieces; beyond that, two blocks may share a key. */
const keyOf = ({ piece, begin }: BlockRef): number => piece * 2 ** 32 + begin
const sameBlock = (a: BlockRef, b: BlockRef): boolean =>
  a.piece === b.piece && a.begin === b.begin && a.length === b.length

/**
 * The requests of one peer, in order. One write at a time waits for the socket: behind it are the kernel's own buffers.
 * Bytes in memory are read straight into the frame that is sent; a thread reads those on disk, behind which are the system's
 * own cache and read-ahead.
 *
 * Invariants: nothing is read while a frame is in flight, so that a peer that reads nothing costs one frame; nothing is sent while
 * the peer is choked.
 */
export class UploadQueue implements LimitedSender {
  readonly #peer: Peer
  readonly #context: UploadContext
  readonly #sent: (piece: number, bytes: number) => void
  /** In order; by where the block begins, so that a cancel costs little. A second request for the same place cannot be cancelled. */
  readonly #queue = new Map<number | QueuedBlock, QueuedBlock>()
  /** Requests beyond the queue's limit since a block was last sent. */
  #refused = 0
  #reading: Run | undefined
  #inFlight = 0
  #closed = false
  #pumping = false
  /** When the socket last took a whole write. */
  drainedAt: number
  readonly #wake = guarded((): void => this.pump())

  /** @param sent called for each block that is handed to the socket */
  constructor(peer: Peer, context: UploadContext, sent: (piece: number, bytes: number) => void) {
    this.#peer = peer
    this.#context = context
    this.#sent = sent
    this.drainedAt = context.env.clock.monotonic()
  }

  get queued(): number {
    return this.#queue.size
  }

  /** When the kernel last took a whole write, while bytes are waiting in the socket's queue. */
  get stalledSince(): number | undefined {
    return this.#inFlight > 0 ? this.drainedAt : undefined
  }

  /** Queues a request; the caller has checked that we have the block and that the peer is unchoked. */
  add(block: BlockRef): void {
    if (this.queued >= OUR_REQUEST_QUEUE) {
      this.#refused += 1
      if (this.#refused > OUR_REQUEST_QUEUE) throw protocolError('flood', 'more requests than its queue holds')
      this.#reject(block)
      return
    }
    const { file, offset } = this.#context.layout.span(block.piece)
    const entry: QueuedBlock = { block, fileIndex: file.index, offset: offset + block.begin }
    const key = keyOf(block)
    this.#queue.set(this.#queue.has(key) ? entry : key, entry)
    if (!this.#pumping) this.#later()
  }

  /** Waits its turn with all others: a few fast peers cannot take all the time. */
  #later(): void {
    loopBudget.later('peer-requests', this.#wake)
  }

  cancel(block: BlockRef): void {
    const entry = this.#queue.get(keyOf(block))
    if (entry === undefined || !sameBlock(entry.block, block)) return
    this.#queue.delete(keyOf(block))
    this.#reject(block)
  }

  get #head(): QueuedBlock | undefined {
    return this.#queue.values().next().value
  }

  #reject(block: BlockRef): void {
    if (this.#peer.handshake.fast) {
      this.#peer.send(formatBlockRef(MESSAGE.reject, block.piece, block.begin, block.length))
    }
  }

  /** After a choke: drops everything unsent, and rejects each request if the peer supports rejects. */
  clear(): void {
    if (!this.#closed) for (const { block } of this.#queue.values()) this.#reject(block)
    this.#queue.clear()
    this.#reading = undefined
    this.#context.env.limiter.leave(this)
    loopBudget.leave(this.#wake)
  }

  close(): void {
    this.#closed = true
    this.clear()
  }

  /** Drops the requests for one file, whose bytes are lost or wrong. */
  dropFile(fileIndex: number): void {
    if (this.#reading?.fileIndex === fileIndex) this.#reading = undefined
    for (const [key, entry] of this.#queue) {
      if (entry.fileIndex !== fileIndex) continue
      this.#queue.delete(key)
      this.#reject(entry.block)
    }
  }

  pump(): void {
    if (!this.#maySend || this.#pumping) return
    const { limiter } = this.#context.env
    if (limiter.limited) return limiter.wait(this)
    this.#pumping = true
    try {
      while (this.#mayGoOn() && this.#sendSome(FRAME_BLOCK_BYTES));
    } finally {
      this.#pumping = false
    }
  }

  get #maySend(): boolean {
    if (this.#closed || this.#peer.closed || this.queued === 0) return false
    return this.#inFlight === 0 && this.#reading === undefined
  }

  sendOne(): boolean {
    return this.#maySend && this.#sendSome(1)
  }

  /** False when others come first: the rest is sent in the next turn. */
  #mayGoOn(): boolean {
    if (!loopBudget.isOver('peer-requests')) return true
    this.#later()
    return false
  }

  /** Sends up to `maxBytes`, at least one block, or begins to read them. True when more could be sent at once. */
  #sendSome(maxBytes: number): boolean {
    const read = this.#sendRead(maxBytes)
    if (read === 'not') this.#readRun(maxBytes)
    return read === 'sent' && this.#maySend
  }

  /** Sends what can be read at once. `later`: in the next turn. */
  #sendRead(maxBytes: number): 'sent' | 'later' | 'not' {
    const { env, layout, options } = this.#context
    const { frames, limiter } = env
    const { storage } = options
    if (storage.readNow === undefined) return 'not'
    const { fileIndex, offset } = this.#head!
    const { lengthBytes } = layout.files[fileIndex]!
    const frame = frames.acquire()
    const targets: Uint8Array[] = []
    for (const entry of this.#queue.values()) {
      const { piece, begin, length } = entry.block
      if (frame.blockBytes >= maxBytes || !frame.holds(length)) break
      if (entry.fileIndex !== fileIndex || entry.offset !== offset + frame.blockBytes) break
      if (entry.offset + length > lengthBytes) break
      targets.push(frame.add(piece, begin, length))
    }
    let count: number | undefined
    try {
      count = targets.length === 0 ? undefined : storage.readNow(fileIndex, offset, targets)
    } catch (error) {
      frames.release(frame)
      this.#lost(fileIndex, error as Error)
      return 'sent'
    }
    // the thread finds out that a file has become too short.
    if (count !== frame.blockBytes) {
      frames.release(frame)
      if (count !== 0) return 'not'
      this.#later()
      return 'later'
    }
    limiter.spend(count)
    this.#send(frame, targets.length)
    return 'sent'
  }

  /** Lets a thread read the bytes of the next requests. Charged at once: others must not spend the same. */
  #readRun(maxBytes: number): void {
    const { fileIndex, offset: start } = this.#head!
    let end = start
    for (const { block, offset, ...entry } of this.#queue.values()) {
      if (entry.fileIndex !== fileIndex || offset !== end) break
      if (end > start && end + block.length - start > maxBytes) break
      end += block.length
    }
    end = Math.min(end, this.#context.layout.files[fileIndex]!.lengthBytes)
    const { frames, limiter } = this.#context.env
    const frame = frames.acquire()
    const run = { fileIndex, start, bytes: frame.tail(Math.max(0, end - start)), frame }
    limiter.spend(run.bytes.length)
    this.#reading = run
    this.#fill(run).catch(reportDefect)
  }

  async #fill(run: Run): Promise<void> {
    const { fileIndex, start, bytes } = run
    let failure: Error | undefined
    try {
      const done = await readFully(this.#context.options.storage, fileIndex, start, bytes)
      if (done < bytes.length) throw new Error(`the file ends at ${start + done}, ${bytes.length - done} bytes early`)
    } catch (error) {
      failure = error as Error
    }
    // otherwise no peer waits for these bytes.
    const isWanted = this.#reading === run
    if (isWanted) this.#reading = undefined
    if (isWanted && failure === undefined) this.#sendRun(run)
    else this.#context.env.frames.release(run.frame)
    if (isWanted && failure !== undefined) this.#lost(fileIndex, failure)
    this.pump()
  }

  #lost(fileIndex: number, error: Error): void {
    // the handler removes the file from all queues of the torrent, including this one.
    this.#context.emit({ kind: 'file-lost', fileIndex, error })
    if (this.#head?.fileIndex === fileIndex) this.dropFile(fileIndex)
  }

  /** Sends the blocks at the head of the queue that a thread has read: some may have been cancelled meanwhile. */
  #sendRun(run: Run): void {
    const { frame } = run
    let count = 0
    for (const entry of this.#queue.values()) {
      const { piece, begin, length } = entry.block
      if (!this.#isIn(run, entry) || !frame.holds(length)) break
      const target = frame.add(piece, begin, length)
      const at = entry.offset - run.start
      const bytes = run.bytes.subarray(at, at + length)
      target.set(bytes)
      // beyond the end of the file: zeros, for clients that request whole blocks (libtorrent before 2.0.13 does with v2
      // torrents).
      target.fill(0, bytes.length)
      count += 1
    }
    if (count > 0) this.#send(frame, count)
    else this.#context.env.frames.release(frame)
  }

  #isIn(run: Run, { fileIndex, offset, block }: QueuedBlock): boolean {
    const end = Math.min(offset + block.length, this.#context.layout.files[fileIndex]!.lengthBytes)
    return fileIndex === run.fileIndex && offset >= run.start && end <= run.start + run.bytes.length
  }

  /** The frame has the first `count` blocks of the queue. */
  #send(frame: Frame, count: number): void {
    const { clock, frames } = this.#context.env
    let left = count
    for (const [key, { block }] of this.#queue) {
      if (left-- === 0) break
      this.#queue.delete(key)
      this.#sent(block.piece, block.length)
    }
    const bytes = frame.blockBytes
    this.#inFlight = bytes
    this.#refused = 0
    const now = clock.monotonic()
    this.drainedAt = now
    this.#peer.up.add(bytes)
    this.#peer.sentThisTurn += bytes
    this.#peer.uploadActiveAt = now
    this.#context.emit({ kind: 'sent', bytes })
    const taken = (): void => {
      this.#inFlight = 0
      frames.release(frame)
      this.drainedAt = clock.monotonic()
    }
    const atOnce = this.#peer.transport.sendNow(frame.message, () => {
      taken()
      if (!this.#closed) this.pump()
    })
    if (atOnce) taken()
  }
}
