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

/** Bytes that requests at the head of the queue ask for, one after the other in one file. */
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

/** Runs in use from which on none is kept for a peer whose socket takes nothing: 16 MiB, whoever stalls. */
const MANY_RUNS = 64

/** Exact for all torrents of less than 2 million pieces; beyond, blocks may share one, and are compared. */
const keyOf = ({ piece, begin }: BlockRef): number => piece * 2 ** 32 + begin
const sameBlock = (a: BlockRef, b: BlockRef): boolean =>
  a.piece === b.piece && a.begin === b.begin && a.length === b.length

/**
 * The requests of one peer, in order. One write at a time waits for the socket: behind it are the kernel's own buffers.
 * What memory has is read straight into the frame that is sent. A thread reads what a disk has, one run of blocks ahead
 * of the socket; the system's own cache and read-ahead are behind that.
 *
 * Invariants: at most one run is held or being read, and one frame is in flight, so that a peer that reads nothing costs at most two of
 * {@link FRAME_BLOCK_BYTES}; nothing is sent while the peer is choked.
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
  #head = 0
  /** Where the piece requested last lies: requests for one piece mostly come one after the other. */
  #span: { readonly piece: number; readonly fileIndex: number; readonly offset: number } | undefined
  /** Requests beyond the queue's limit since a block was last sent. */
  #refused = 0
  #run: Run | undefined
  #reading: Run | undefined
  /** The bytes sent last came from a thread. */
  #isSlow = false
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
    return this.#queue.length - this.#head
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
    if (this.#span?.piece !== block.piece) {
      const { file, offset } = this.#context.layout.span(block.piece)
      this.#span = { piece: block.piece, fileIndex: file.index, offset }
    }
    const { fileIndex, offset } = this.#span
    const entry: QueuedBlock = { block, fileIndex, offset: offset + block.begin }
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
    this.#byBlock ??= new Map(this.#queue.slice(this.#head).map((entry) => [keyOf(entry.block), entry]))
    const entry = this.#byBlock.get(keyOf(block))
    if (entry === undefined || !sameBlock(entry.block, block)) return
    this.#remove(this.#queue.indexOf(entry, this.#head))
    this.#reject(block)
  }

  #remove(at: number): void {
    const entry = this.#queue.splice(at, 1)[0]!
    this.#forget(entry)
  }

  #forget(entry: QueuedBlock): void {
    if (this.#byBlock === undefined) return
    const key = keyOf(entry.block)
    if (this.#byBlock.get(key) === entry) this.#byBlock.delete(key)
  }

  #reject(block: BlockRef): void {
    if (this.#peer.handshake.fast) {
      this.#peer.send(formatBlockRef(MESSAGE.reject, block.piece, block.begin, block.length))
    }
  }

  /** After a choke: drops everything unsent, and rejects each request if the peer supports rejects. */
  clear(): void {
    const dropped = this.#queue.splice(0).slice(this.#head)
    this.#byBlock = undefined
    this.#head = 0
    this.#dropRun()
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
    if (this.#run?.fileIndex === fileIndex) this.#dropRun()
    if (this.#reading?.fileIndex === fileIndex) this.#reading = undefined
    for (let at = this.#queue.length - 1; at >= this.#head; at -= 1) {
      const entry = this.#queue[at]!
      if (entry.fileIndex !== fileIndex) continue
      this.#remove(at)
      this.#reject(entry.block)
    }
  }

  /** Sends what can be sent now. */
  pump(): void {
    if (this.#closed || this.#pumping || this.#peer.closed) return
    this.#pumping = true
    try {
      if (!UploadLimiter.limited(this)) while (this.#mayGoOn() && this.#sendSome());
      else if (this.#run !== undefined) this.#context.limiter.wait(this)
      else this.#readAhead()
    } finally {
      this.#pumping = false
    }
  }

  /** Called by the limiter: sends one block. */
  sendOne(): boolean {
    if (this.#closed || this.#peer.closed || this.#inFlight > 0) return false
    this.#sendRun(1)
    if (this.#run === undefined) this.#readAhead()
    return this.#run !== undefined && this.#inFlight === 0
  }

  /** True when more could be sent at once. */
  #sendSome(): boolean {
    if (this.#inFlight > 0) {
      if (this.#isSlow && this.#run === undefined) this.#readAhead()
      return false
    }
    if (this.#run !== undefined) return this.#sendRun(FRAME_BLOCK_BYTES)
    const read = this.#reading === undefined ? this.#sendRead() : 'later'
    if (read === 'not') this.#readRun()
    return read === 'sent'
  }

  /** False when others come first: the rest is sent in the next turn. */
  #mayGoOn(): boolean {
    if (!loopBudget.isOver('peer-requests')) return true
    this.#later()
    return false
  }

  /** While the socket takes nothing, only where memory is plenty. */
  #readAhead(): void {
    if (this.#inFlight === 0 || this.#context.runs.taken < MANY_RUNS) this.#readRun()
  }

  /** Lets a thread read what the next requests ask for. */
  #readRun(): void {
    if (this.queued === 0 || this.#reading !== undefined) return
    const { fileIndex, offset: start } = this.#queue[this.#head]!
    let end = start
    for (let at = this.#head; at < this.#queue.length; at += 1) {
      const { block, offset, ...entry } = this.#queue[at]!
      if (entry.fileIndex !== fileIndex || offset !== end) break
      if (end > start && end + block.length - start > FRAME_BLOCK_BYTES) break
      end += block.length
    }
    end = Math.min(end, this.#context.layout.files[fileIndex]!.lengthBytes)
    const memory = this.#context.runs.take()
    const run = { fileIndex, start, bytes: memory.subarray(0, Math.max(0, end - start)), memory }
    this.#reading = run
    this.#fill(run).catch(reportDefect)
  }

  #dropRun(): void {
    if (this.#run !== undefined) this.#context.runs.give(this.#run.memory)
    this.#run = undefined
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
    // Nobody asks for these bytes any longer.
    if (this.#reading !== run) return this.#context.runs.give(run.memory)
    this.#reading = undefined
    this.#run = run
    this.#isSlow = true
    if (failure !== undefined) {
      this.#dropRun()
      this.#lost(fileIndex, failure)
    }
    this.pump()
  }

  /** Sends what can be read at once. `later`: in the next turn. */
  #sendRead(): 'sent' | 'later' | 'not' {
    const { storage, layout, frames } = this.#context
    const first = this.#queue[this.#head]
    if (first === undefined || storage.readNow === undefined) return 'not'
    const { fileIndex, offset } = first
    const { lengthBytes } = layout.files[fileIndex]!
    const frame = frames.take()
    frame.clear()
    const targets: Uint8Array[] = []
    for (let at = this.#head; at < this.#queue.length && frame.blockBytes < FRAME_BLOCK_BYTES; at += 1) {
      const entry = this.#queue[at]!
      const { piece, begin, length } = entry.block
      if (entry.fileIndex !== fileIndex || entry.offset !== offset + frame.blockBytes) break
      if (entry.offset + length > lengthBytes || !frame.holds(length)) break
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
    for (const _ of targets) this.#shift(this.#queue[this.#head]!)
    this.#isSlow = false
    this.#send(frame)
    return 'sent'
  }

  #lost(fileIndex: number, error: Error): void {
    // The handler removes the file from all queues of the torrent, including this one.
    this.#context.emit({ kind: 'file-lost', fileIndex, error })
    if (this.#queue[this.#head]?.fileIndex === fileIndex) this.dropFile(fileIndex)
  }

  /** One write of up to `maxBytes` (at least one block) of what a thread has read. True when more could be sent at once. */
  #sendRun(maxBytes: number): boolean {
    const { frames } = this.#context
    const frame = frames.take()
    frame.clear()
    let entry = this.#nextOfRun()
    while (entry !== undefined && frame.blockBytes < maxBytes && frame.holds(entry.block.length)) {
      const { piece, begin, length } = entry.block
      const at = entry.offset - this.#run!.start
      const target = frame.add(piece, begin, length)
      const bytes = this.#run!.bytes.subarray(at, at + length)
      target.set(bytes)
      // Beyond the end of the file: zeros, for clients that request whole blocks (libtorrent before 2.0.13 does with v2
      // torrents).
      target.fill(0, bytes.length)
      this.#shift(entry)
      entry = this.#nextOfRun()
    }
    if (entry === undefined) this.#dropRun()
    if (frame.blockBytes > 0) this.#send(frame)
    else frames.give(frame)
    return this.queued > 0
  }

  /** The request at the head, if its bytes are in the run. */
  #nextOfRun(): QueuedBlock | undefined {
    const entry = this.#queue[this.#head]
    const run = this.#run
    if (entry === undefined || run === undefined) return undefined
    const { fileIndex, offset, block } = entry
    const end = Math.min(offset + block.length, this.#context.layout.files[fileIndex]!.lengthBytes)
    return fileIndex === run.fileIndex && offset >= run.start && end <= run.start + run.bytes.length ? entry : undefined
  }

  #send(frame: Frame): void {
    const { clock, frames, emit } = this.#context
    const bytes = frame.blockBytes
    this.#inFlight += bytes
    this.#refused = 0
    const now = clock.monotonic()
    if (this.#inFlight === bytes) this.drainedAt = now
    for (const bucket of this.buckets) bucket.spend(bytes)
    this.#peer.up.add(bytes)
    this.#peer.sentThisTurn += bytes
    this.#peer.uploadActiveAt = now
    emit({ kind: 'sent', bytes })
    const taken = (): void => {
      this.#inFlight -= bytes
      frames.give(frame)
      this.drainedAt = clock.monotonic()
    }
    const atOnce = this.#peer.transport.sendNow(frame.message, () => {
      taken()
      if (!this.#closed) this.pump()
    })
    if (atOnce) taken()
    else if (this.#context.runs.taken >= MANY_RUNS) this.#dropRun()
  }

  /** The entry's bytes are in a frame that is sent now. */
  #shift(entry: QueuedBlock): void {
    this.#context.sent(entry.block.piece, entry.block.length)
    this.#forget(entry)
    this.#head += 1
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0
      this.#head = 0
      this.#byBlock = undefined
    } else if (this.#head > 512 && this.#head * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
  }

  checkInvariants(): void {
    if (this.#byBlock !== undefined && this.#byBlock.size > this.queued)
      throw new Error('requests that are gone can be cancelled')
    if (this.#peer.amChoking && this.queued > 0) throw new Error('requests of a choked peer')
  }
}
