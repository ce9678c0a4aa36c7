import type { Clock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import type { TorrentLayout } from '@svc/metainfo'
import type { Emit } from '../events.ts'
import { guarded, reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import type { TorrentStorage } from '../storage.ts'
import { OUR_REQUEST_QUEUE } from '../wire/extensions.ts'
import { type BlockRef, formatBlockRef, MESSAGE } from '../wire/messages.ts'
import { FRAME_BLOCK_BYTES, type Frame, type Spares } from './frame.ts'
import { type LimitedSender, type UploadLimit, UploadLimiter } from './limiter.ts'

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
  /** A part of `memory`. */
  readonly bytes: Uint8Array
  readonly memory: Buffer
}

export interface UploadContext {
  readonly clock: Clock
  readonly layout: TorrentLayout
  readonly storage: Pick<TorrentStorage, 'read' | 'readNow'>
  readonly frames: Spares<Frame>
  /** Of {@link FRAME_BLOCK_BYTES}, for what threads read. */
  readonly runs: Spares<Buffer>
  readonly limiter: UploadLimiter
  /** Called for each block that is handed to the socket. */
  readonly sent: (piece: number, bytes: number) => void
  readonly emit: Emit<'file-lost' | 'sent'>
}

/** Exact for all torrents of less than 2 million pieces; beyond, blocks may share one, and are compared. */
const keyOf = ({ piece, begin }: BlockRef): number => piece * 2 ** 32 + begin
const sameBlock = (a: BlockRef, b: BlockRef): boolean =>
  a.piece === b.piece && a.begin === b.begin && a.length === b.length

/**
 * The requests of one peer, in order. One write at a time waits for the socket: behind it are the kernel's own buffers.
 * What memory has is read straight into the frame that is sent; a thread reads what a disk has, and the system's own cache and
 * read-ahead are behind that.
 *
 * Invariants: nothing is read while a frame is in flight, so that a peer that reads nothing costs one frame; nothing is sent while
 * the peer is choked.
 */
export class UploadQueue implements LimitedSender {
  readonly buckets: readonly UploadLimit[]
  readonly #peer: Peer
  readonly #context: UploadContext
  readonly #queue: QueuedBlock[] = []
  /**
   * The waiting requests by where their block begins, so that a cancel without a match costs nothing. Of two requests
   * for one place, the later. Kept from the first cancel until the queue is empty: most peers cancel nothing.
   */
  #byBlock: Map<number, QueuedBlock> | undefined
  /** Requests beyond the queue's limit since a block was last sent. */
  #refused = 0
  #reading: Run | undefined
  #inFlight = 0
  #closed = false
  #pumping = false
  /** When the socket last took a whole write. */
  drainedAt: number
  readonly #wake = guarded((): void => this.pump())

  constructor(peer: Peer, context: UploadContext, buckets: readonly UploadLimit[]) {
    this.#peer = peer
    this.#context = context
    this.buckets = buckets
    this.drainedAt = context.clock.monotonic()
  }

  get queued(): number {
    return this.#queue.length
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
    this.#queue.push(entry)
    this.#byBlock?.set(keyOf(block), entry)
    if (!this.#pumping) this.#later()
  }

  /** With all others that wait: a few fast peers cannot keep the time from the others. */
  #later(): void {
    loopBudget.later('peer-requests', this.#wake)
  }

  cancel(block: BlockRef): void {
    if (this.queued === 0) return
    this.#byBlock ??= new Map(this.#queue.map((entry) => [keyOf(entry.block), entry]))
    const entry = this.#byBlock.get(keyOf(block))
    if (entry === undefined || !sameBlock(entry.block, block)) return
    this.#remove(this.#queue.indexOf(entry), 1)
    this.#reject(block)
  }

  #remove(at: number, count: number): void {
    const removed = this.#queue.splice(at, count)
    if (this.#queue.length === 0) this.#byBlock = undefined
    if (this.#byBlock === undefined) return
    for (const entry of removed) {
      const key = keyOf(entry.block)
      if (this.#byBlock.get(key) === entry) this.#byBlock.delete(key)
    }
  }

  #reject(block: BlockRef): void {
    if (this.#peer.handshake.fast) {
      this.#peer.send(formatBlockRef(MESSAGE.reject, block.piece, block.begin, block.length))
    }
  }

  /** After a choke: drops everything unsent, and rejects each request if the peer supports rejects. */
  clear(): void {
    const dropped = this.#queue.splice(0)
    this.#byBlock = undefined
    this.#reading = undefined
    if (!this.#closed) for (const { block } of dropped) this.#reject(block)
    this.#context.limiter.leave(this)
    loopBudget.leave(this.#wake)
  }

  close(): void {
    this.#closed = true
    this.clear()
  }

  /** Drops the requests for one file, whose bytes are lost or wrong. */
  dropFile(fileIndex: number): void {
    if (this.#reading?.fileIndex === fileIndex) this.#reading = undefined
    for (let at = this.#queue.length - 1; at >= 0; at -= 1) {
      const entry = this.#queue[at]!
      if (entry.fileIndex !== fileIndex) continue
      this.#remove(at, 1)
      this.#reject(entry.block)
    }
  }

  /** Sends what can be sent now. */
  pump(): void {
    if (!this.#maySend || this.#pumping) return
    if (UploadLimiter.limited(this)) return this.#context.limiter.wait(this)
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

  /** Called by the limiter: sends one block. */
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
    const { storage, layout, frames } = this.#context
    if (storage.readNow === undefined) return 'not'
    const { fileIndex, offset } = this.#queue[0]!
    const { lengthBytes } = layout.files[fileIndex]!
    const frame = frames.take()
    frame.clear()
    const targets: Uint8Array[] = []
    for (const entry of this.#queue) {
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
      frames.give(frame)
      this.#lost(fileIndex, error as Error)
      return 'sent'
    }
    // The thread finds out that a file has become too short.
    if (count !== frame.blockBytes) {
      frames.give(frame)
      if (count !== 0) return 'not'
      this.#later()
      return 'later'
    }
    UploadLimiter.spend(this, count)
    this.#send(frame, targets.length)
    return 'sent'
  }

  /** Lets a thread read what the next requests ask for. Charged at once: others must not spend the same. */
  #readRun(maxBytes: number): void {
    const { fileIndex, offset: start } = this.#queue[0]!
    let end = start
    for (const { block, offset, ...entry } of this.#queue) {
      if (entry.fileIndex !== fileIndex || offset !== end) break
      if (end > start && end + block.length - start > maxBytes) break
      end += block.length
    }
    end = Math.min(end, this.#context.layout.files[fileIndex]!.lengthBytes)
    const memory = this.#context.runs.take()
    const run = { fileIndex, start, bytes: memory.subarray(0, Math.max(0, end - start)), memory }
    UploadLimiter.spend(this, run.bytes.length)
    this.#reading = run
    this.#fill(run).catch(reportDefect)
  }

  async #fill(run: Run): Promise<void> {
    const { fileIndex, start, bytes } = run
    let failure: Error | undefined
    try {
      for (let done = 0; done < bytes.length; ) {
        const count = await this.#context.storage.read(fileIndex, start + done, bytes.subarray(done))
        if (count === 0) throw new Error(`the file ends at ${start + done}, ${bytes.length - done} bytes early`)
        done += count
      }
    } catch (error) {
      failure = error as Error
    }
    // Otherwise nobody asks for these bytes any longer.
    if (this.#reading === run) {
      this.#reading = undefined
      if (failure === undefined) this.#sendRun(run)
      else this.#lost(fileIndex, failure)
    }
    this.#context.runs.give(run.memory)
    this.pump()
  }

  #lost(fileIndex: number, error: Error): void {
    // The handler removes the file from all queues of the torrent, including this one.
    this.#context.emit({ kind: 'file-lost', fileIndex, error })
    if (this.#queue[0]?.fileIndex === fileIndex) this.dropFile(fileIndex)
  }

  /** Sends the blocks at the head of the queue that a thread has read: some may have been cancelled meanwhile. */
  #sendRun(run: Run): void {
    const { frames } = this.#context
    const frame = frames.take()
    frame.clear()
    let count = 0
    for (const entry of this.#queue) {
      const { piece, begin, length } = entry.block
      if (!this.#isIn(run, entry) || !frame.holds(length)) break
      const target = frame.add(piece, begin, length)
      const at = entry.offset - run.start
      const bytes = run.bytes.subarray(at, at + length)
      target.set(bytes)
      // Beyond the end of the file: zeros, for clients that request whole blocks (libtorrent before 2.0.13 does with v2
      // torrents).
      target.fill(0, bytes.length)
      count += 1
    }
    if (count > 0) this.#send(frame, count)
    else frames.give(frame)
  }

  #isIn(run: Run, { fileIndex, offset, block }: QueuedBlock): boolean {
    const end = Math.min(offset + block.length, this.#context.layout.files[fileIndex]!.lengthBytes)
    return fileIndex === run.fileIndex && offset >= run.start && end <= run.start + run.bytes.length
  }

  /** The frame has the first `count` blocks of the queue. */
  #send(frame: Frame, count: number): void {
    const { clock, frames, emit, sent } = this.#context
    for (const { block } of this.#queue.slice(0, count)) sent(block.piece, block.length)
    this.#remove(0, count)
    const bytes = frame.blockBytes
    this.#inFlight = bytes
    this.#refused = 0
    const now = clock.monotonic()
    this.drainedAt = now
    this.#peer.up.add(bytes)
    this.#peer.sentThisTurn += bytes
    this.#peer.uploadActiveAt = now
    emit({ kind: 'sent', bytes })
    const taken = (): void => {
      this.#inFlight = 0
      frames.give(frame)
      this.drainedAt = clock.monotonic()
    }
    const atOnce = this.#peer.transport.sendNow(frame.message, () => {
      taken()
      if (!this.#closed) this.pump()
    })
    if (atOnce) taken()
  }

  checkInvariants(): void {
    if (this.#byBlock !== undefined && this.#byBlock.size > this.queued)
      throw new Error('requests that are gone can be cancelled')
    if (this.#peer.amChoking && this.queued > 0) throw new Error('requests of a choked peer')
  }
}
