// One file because each way of sending keeps the same counts: of what is queued, read ahead, in frames and in flight.

import type { Clock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import type { TorrentLayout } from '@svc/metainfo'
import type { FileProgress } from '../download/file-progress.ts'
import type { Emit } from '../events.ts'
import { guarded } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { OUR_REQUEST_QUEUE } from '../wire/extensions.ts'
import { type BlockRef, formatBlockRef, MESSAGE } from '../wire/messages.ts'
import { FRAME_BLOCK_BYTES, type Frame, type Frames } from './frame.ts'
import { type LimitedSender, UploadLimiter } from './limiter.ts'
import { CHUNK_BYTES, type Chunk, type ChunkSource, type ReadCache } from './read-cache.ts'
import type { TokenBucket } from './token-bucket.ts'

interface Entry {
  readonly block: BlockRef
  readonly fileIndex: number
  /** In the file. */
  readonly offset: number
  chunks: readonly Chunk[] | undefined
}

export interface UploadContext {
  readonly clock: Clock
  readonly layout: TorrentLayout
  readonly source: ChunkSource
  readonly cache: ReadCache
  readonly frames: Frames
  readonly limiter: UploadLimiter
  /** Which files are complete: of others only verified pieces are read. */
  readonly files: Pick<FileProgress, 'isDone'>
  /** Called for each block that is handed to the socket. */
  readonly sent: (piece: number, bytes: number) => void
  readonly emit: Emit<'file-lost' | 'sent'>
}

/** How far to read ahead from a disk that takes its time. */
const MIN_AHEAD_BYTES = 262_144
const MAX_AHEAD_BYTES = 2 * 1024 * 1024
/** Exact for all torrents of less than 2 million pieces; beyond, blocks may share one, and are compared. */
const keyOf = ({ piece, begin }: BlockRef): number => piece * 2 ** 32 + begin
const sameBlock = (a: BlockRef, b: BlockRef): boolean =>
  a.piece === b.piece && a.begin === b.begin && a.length === b.length
const chunkOf = (offset: number): number => Math.floor(offset / CHUNK_BYTES)

/**
 * The requests of one peer, in order: reads along the queue and sends while the socket accepts data. One write at a time
 * waits for the socket: behind it are the kernel's own buffers. What memory has is read into the frame that is sent,
 * when it can be sent. What a disk has goes through the cache, read ahead: twice as much with each write that the
 * kernel took completely, and less for slow readers, so that these pin little memory.
 *
 * Invariants: chunks are pinned exactly from `acquire` until their bytes are in a frame; nothing is sent while the peer
 * is choked.
 */
export class UploadQueue implements LimitedSender {
  readonly buckets: readonly TokenBucket[]
  readonly #peer: Peer
  readonly #context: UploadContext
  readonly #queue: Entry[] = []
  /**
   * The waiting requests by where their block begins, so that a cancel without a match costs nothing. Of two requests
   * for one place, the later. Kept from the first cancel until the queue is empty: most peers cancel nothing.
   */
  #byBlock: Map<number, Entry> | undefined
  #head = 0
  /** Where the piece requested last lies: requests for one piece mostly come one after the other. */
  #span: { readonly piece: number; readonly fileIndex: number; readonly offset: number } | undefined
  /** Number of entries at the head that have (or wait for) their chunks. */
  #fetched = 0
  #fetchedBytes = 0
  /** Requests beyond the queue's limit since a block was last sent. */
  #refused = 0
  #aheadBytes = MIN_AHEAD_BYTES
  /** The chunk sent last had to be waited for. */
  #slowReads = false
  #inFlight = 0
  #closed = false
  #pumping = false
  /** When the socket last took a whole write. */
  drainedAt: number
  readonly #wake = guarded((): void => this.pump())

  constructor(peer: Peer, context: UploadContext, buckets: readonly TokenBucket[]) {
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
    const entry: Entry = { block, fileIndex, offset: offset + block.begin, chunks: undefined }
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
    if (at < this.#head + this.#fetched) {
      this.#fetched -= 1
      this.#fetchedBytes -= entry.block.length
    }
    for (const chunk of entry.chunks ?? []) this.#context.cache.release(chunk)
  }

  #forget(entry: Entry): void {
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
    this.#fetched = 0
    this.#fetchedBytes = 0
    for (const entry of dropped) {
      for (const chunk of entry.chunks ?? []) this.#context.cache.release(chunk)
      if (!this.#closed) this.#reject(entry.block)
    }
    this.#context.limiter.leave(this)
    loopBudget.leave(this.#wake)
    this.#context.cache.leave(this.#wake)
  }

  close(): void {
    this.#closed = true
    this.clear()
  }

  /** Drops the requests for one file, whose bytes are lost. */
  dropFile(fileIndex: number): void {
    for (let at = this.#queue.length - 1; at >= this.#head; at -= 1) {
      const entry = this.#queue[at]!
      if (entry.fileIndex !== fileIndex) continue
      this.#remove(at)
      this.#reject(entry.block)
    }
  }

  /** Reads ahead and sends what can be sent now. */
  pump(): void {
    if (this.#closed || this.#pumping || this.#peer.closed) return
    this.#pumping = true
    try {
      if (UploadLimiter.limited(this)) {
        this.#readAhead()
        if (this.#headReady()) this.#context.limiter.wait(this)
      } else while (this.#mayGoOn() && this.#sendSome());
    } finally {
      this.#pumping = false
    }
  }

  /** Called by the limiter: sends one block. */
  sendOne(): boolean {
    if (this.#closed || this.#peer.closed) return false
    if (this.#inFlight < FRAME_BLOCK_BYTES) this.#sendBatch(1)
    this.#readAhead()
    return this.#headReady() && this.#inFlight < FRAME_BLOCK_BYTES
  }

  /** True when more could be sent at once. */
  #sendSome(): boolean {
    const read = this.#inFlight === 0 && this.#fetched === 0 ? this.#sendRead() : 'not'
    if (read !== 'not') return read === 'sent'
    this.#readAhead()
    return this.#sendBatch(FRAME_BLOCK_BYTES)
  }

  /** False when others come first: the rest is sent in the next turn. */
  #mayGoOn(): boolean {
    if (!loopBudget.isOver('peer-requests')) return true
    this.#later()
    return false
  }

  #readAhead(): void {
    const window = this.#slowReads ? this.#aheadBytes : this.#inFlight > 0 ? 0 : CHUNK_BYTES
    while (this.#head + this.#fetched < this.#queue.length && this.#fetchedBytes < window) {
      const entry = this.#queue[this.#head + this.#fetched]!
      const chunks = this.#acquire(entry)
      if (chunks === undefined) return
      entry.chunks = chunks
      this.#fetched += 1
      this.#fetchedBytes += entry.block.length
    }
  }

  #acquire(entry: Entry): readonly Chunk[] | undefined {
    const { layout, files, cache, source } = this.#context
    const file = layout.files[entry.fileIndex]!
    const end = Math.min(entry.offset + entry.block.length, file.lengthBytes)
    // The block before it in the queue mostly lies in the same chunk and holds it.
    const before = this.#fetched === 0 ? undefined : this.#queue[this.#head + this.#fetched - 1]!
    if (before?.chunks?.length === 1 && before.block.piece === entry.block.piece) {
      const at = chunkOf(entry.offset)
      if (chunkOf(before.offset) === at && end <= (at + 1) * CHUNK_BYTES) {
        cache.hold(before.chunks[0]!)
        return before.chunks
      }
    }
    // Bytes next to the piece may be unverified or missing: they must not get into the cache.
    const whole = files.isDone(file)
    const piece = layout.span(entry.block.piece)
    const first = whole ? 0 : piece.offset
    const last = whole ? file.lengthBytes : piece.offset + piece.lengthBytes
    const chunks: Chunk[] = []
    for (let at = chunkOf(entry.offset); at * CHUNK_BYTES < end; at += 1) {
      const base = at * CHUNK_BYTES
      const range = { from: Math.max(0, first - base), to: Math.min(CHUNK_BYTES, last - base) }
      // A queue without chunks gets its first ones even beyond the budget: slow readers must not starve the others.
      const insist = this.#fetched === 0 && this.#inFlight === 0
      const chunk = cache.acquire(source, entry.fileIndex, at, range, insist, this.#wake)
      if (chunk === undefined) {
        for (const held of chunks) cache.release(held)
        return undefined
      }
      chunks.push(chunk)
    }
    return chunks
  }

  #headReady(): boolean {
    const chunks = this.#queue[this.#head]?.chunks
    if (chunks === undefined) return false
    for (const chunk of chunks) if (!chunk.ready) return false
    return true
  }

  /** Sends what can be read at once, past the cache. `later`: in the next turn. */
  #sendRead(): 'sent' | 'later' | 'not' {
    const { source, layout, frames } = this.#context
    const first = this.#queue[this.#head]
    if (first === undefined || source.readNow === undefined) return 'not'
    const { fileIndex, offset } = first
    const { lengthBytes } = layout.files[fileIndex]!
    const frame = frames.take()
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
      count = targets.length === 0 ? undefined : source.readNow(fileIndex, offset, targets)
    } catch (error) {
      frames.give(frame)
      this.#lost(fileIndex, error as Error)
      return 'sent'
    }
    // A file that has become too short is found out by the cache.
    if (count !== frame.blockBytes) {
      frames.give(frame)
      if (count !== 0) return 'not'
      this.#later()
      return 'later'
    }
    for (const _ of targets) this.#shift(this.#queue[this.#head]!)
    this.#send(frame)
    return 'sent'
  }

  #lost(fileIndex: number, error: Error): void {
    // The handler removes the file from all queues of the torrent, including this one.
    this.#context.emit({ kind: 'file-lost', fileIndex, error })
    if (this.#queue[this.#head]?.fileIndex === fileIndex) this.dropFile(fileIndex)
  }

  /** One write of up to `maxBytes` (at least one block) from the cache. True when more could be sent at once. */
  #sendBatch(maxBytes: number): boolean {
    if (this.#inFlight >= FRAME_BLOCK_BYTES || !this.#headReady()) return false
    const { frames, cache } = this.#context
    const frame = frames.take()
    while (frame.blockBytes < maxBytes && this.#headReady()) {
      const entry = this.#queue[this.#head]!
      const { block } = entry
      const chunks = entry.chunks!
      const failed = chunks.find((chunk) => chunk.error !== undefined)
      if (failed !== undefined) {
        this.#lost(entry.fileIndex, failed.error!)
        continue
      }
      if (!frame.holds(block.length)) break
      this.#shift(entry)
      this.#copy(entry, frame.add(block.piece, block.begin, block.length))
      this.#slowReads = chunks.at(-1)?.slow === true
      for (const chunk of chunks) cache.release(chunk)
    }
    if (frame.blockBytes === 0) {
      frames.give(frame)
      return false
    }
    this.#send(frame)
    return true
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
      const now = clock.monotonic()
      const took = now - this.drainedAt
      this.drainedAt = now
      // A slow write means a slow reader: keep less of its data in memory.
      if (took < 250) this.#aheadBytes = Math.min(MAX_AHEAD_BYTES, this.#aheadBytes * 2)
      else if (took > 1000) this.#aheadBytes = Math.max(MIN_AHEAD_BYTES, this.#aheadBytes / 2)
    }
    const atOnce = this.#peer.transport.sendNow(frame.message, () => {
      taken()
      if (!this.#closed) this.pump()
    })
    if (atOnce) taken()
  }

  /** The entry's bytes are in a frame that is sent now. */
  #shift(entry: Entry): void {
    this.#context.sent(entry.block.piece, entry.block.length)
    this.#forget(entry)
    this.#head += 1
    if (this.#fetched > 0) {
      this.#fetched -= 1
      this.#fetchedBytes -= entry.block.length
    }
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0
      this.#head = 0
      this.#byBlock = undefined
    } else if (this.#head > 512 && this.#head * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
  }

  /** From the entry's chunks. */
  #copy(entry: Entry, target: Uint8Array): void {
    const { lengthBytes } = this.#context.layout.files[entry.fileIndex]!
    const end = Math.min(entry.offset + entry.block.length, lengthBytes)
    let at = entry.offset
    for (const chunk of entry.chunks!) {
      const base = chunkOf(at) * CHUNK_BYTES
      const until = Math.min(end, base + CHUNK_BYTES)
      target.set(chunk.bytes.subarray(at - base, until - base), at - entry.offset)
      at = until
    }
    // Beyond the end of the file: zeros, for clients that request whole blocks (libtorrent before 2.0.13 does with v2
    // torrents).
    target.fill(0, Math.max(at, entry.offset) - entry.offset)
  }

  checkInvariants(): void {
    if (this.#byBlock !== undefined && this.#byBlock.size > this.queued)
      throw new Error('requests that are gone can be cancelled')
    if (this.#fetched > this.queued) throw new Error('read ahead of the queue')
    let bytes = 0
    for (let at = this.#head; at < this.#head + this.#fetched; at += 1) {
      if (this.#queue[at]!.chunks === undefined) throw new Error('an entry without its chunks')
      bytes += this.#queue[at]!.block.length
    }
    if (bytes !== this.#fetchedBytes) throw new Error('bytes read ahead are miscounted')
    if (this.#peer.amChoking && this.queued > 0) throw new Error('requests of a choked peer')
  }
}
