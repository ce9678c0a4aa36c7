import type { TorrentLayout } from '@svc/metainfo'
import type { FileProgress } from '../download/file-progress.ts'
import type { Emit } from '../events.ts'
import { guarded } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { OUR_REQUEST_QUEUE } from '../wire/extensions.ts'
import { type BlockRef, formatBlockRef, MESSAGE, PIECE_HEADER_BYTES, writePieceHeader } from '../wire/messages.ts'
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
  readonly layout: TorrentLayout
  readonly source: ChunkSource
  readonly cache: ReadCache
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
/** Approximate size of a write: what was just read is still in the CPU's cache then. */
const BATCH_BYTES = CHUNK_BYTES
/** Sent to one peer in one turn of the event loop at most, however much the kernel takes. */
const TURN_BYTES = 2 * 1024 * 1024
/** Exact for all torrents of less than 2 million pieces; beyond, blocks may share one, and are compared. */
const keyOf = ({ piece, begin }: BlockRef): number => piece * 2 ** 32 + begin
const sameBlock = (a: BlockRef, b: BlockRef): boolean =>
  a.piece === b.piece && a.begin === b.begin && a.length === b.length
const chunkOf = (offset: number): number => Math.floor(offset / CHUNK_BYTES)
const ZEROS = new Uint8Array(131_072)

/**
 * The requests of one peer, in order: reads along the queue and sends while the socket accepts data. One write at a time
 * waits for the socket: behind it are the kernel's own buffers. From memory a chunk is read when it can be sent; from a
 * slow disk chunks are read ahead: twice as many with each write that the kernel took completely, and fewer for slow
 * readers, so that these pin little memory.
 *
 * Invariants: chunks are pinned exactly from `acquire` to the end of the write; nothing is sent while the peer is
 * choked.
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
  /** For the heads of blocks; each is used again after the socket has taken it. */
  #heads: Uint8Array[] = []
  /** Number of entries at the head that have (or wait for) their chunks. */
  #fetched = 0
  #fetchedBytes = 0
  /** Requests beyond the queue's limit since a block was last sent. */
  #refused = 0
  #aheadBytes = MIN_AHEAD_BYTES
  /** The chunk sent last had to be waited for. */
  #slowReads = false
  #inFlight = 0
  #turnBytes = 0
  #closed = false
  #pumping = false
  /** When the socket last took a whole write. */
  drainedAt: number
  readonly #wake = (): void => this.pump()

  constructor(peer: Peer, context: UploadContext, buckets: readonly TokenBucket[]) {
    this.#peer = peer
    this.#context = context
    this.buckets = buckets
    this.drainedAt = performance.now()
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
    if (!this.#pumping) this.pumpSoon()
  }

  #soon = false
  pumpSoon(): void {
    if (this.#soon) return
    this.#soon = true
    setImmediate(
      guarded(() => {
        this.#soon = false
        this.#turnBytes = 0
        this.pump()
      })
    )
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
      this.#readAhead()
      if (UploadLimiter.limited(this)) {
        if (this.#headReady()) this.#context.limiter.wait(this)
      } else while (this.#mayGoOn() && this.#sendBatch(BATCH_BYTES)) this.#readAhead()
    } finally {
      this.#pumping = false
    }
  }

  /** Called by the limiter: sends one block. */
  sendOne(): boolean {
    if (this.#closed || this.#peer.closed) return false
    if (this.#inFlight < BATCH_BYTES) this.#sendBatch(1)
    this.#readAhead()
    return this.#headReady() && this.#inFlight < BATCH_BYTES
  }

  /** False when others come first: the rest is sent in the next turn. */
  #mayGoOn(): boolean {
    if (this.#turnBytes < TURN_BYTES) return true
    this.pumpSoon()
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

  /** One write of up to `maxBytes` (at least one block). True when more could be sent at once. */
  #sendBatch(maxBytes: number): boolean {
    if (this.#inFlight >= BATCH_BYTES || !this.#headReady()) return false
    const out: Uint8Array[] = []
    const pins: Chunk[] = []
    let bytes = 0
    let blocks = 0
    while (bytes < maxBytes && this.#headReady()) {
      const entry = this.#queue[this.#head]!
      const chunks = entry.chunks!
      const failed = chunks.find((chunk) => chunk.error !== undefined)
      if (failed !== undefined) {
        // The handler removes the file from all queues of the torrent, including this one.
        this.#context.emit({ kind: 'file-lost', fileIndex: entry.fileIndex, error: failed.error! })
        if (this.#queue[this.#head] === entry) this.dropFile(entry.fileIndex)
        continue
      }
      this.#shift(entry)
      this.#heads[blocks] ??= Buffer.allocUnsafe(PIECE_HEADER_BYTES)
      const head = this.#heads[blocks]!
      writePieceHeader(head, entry.block.piece, entry.block.begin, entry.block.length)
      blocks += 1
      out.push(head)
      this.#slices(entry, out)
      for (const chunk of chunks) pins.push(chunk)
      this.#slowReads = chunks.at(-1)?.slow === true
      bytes += entry.block.length
      this.#context.sent(entry.block.piece, entry.block.length)
    }
    if (bytes === 0) return false
    this.#inFlight += bytes
    this.#turnBytes += bytes
    this.#refused = 0
    if (this.#inFlight === bytes) this.drainedAt = performance.now()
    for (const bucket of this.buckets) bucket.spend(bytes)
    this.#peer.up.add(bytes)
    this.#peer.sentThisTurn += bytes
    this.#peer.uploadActiveAt = performance.now()
    this.#context.emit({ kind: 'sent', bytes })
    const taken = (): void => {
      this.#inFlight -= bytes
      for (const chunk of pins) this.#context.cache.release(chunk)
      const now = performance.now()
      const took = now - this.drainedAt
      this.drainedAt = now
      // A slow write means a slow reader: keep less of its data in memory.
      if (took < 250) this.#aheadBytes = Math.min(MAX_AHEAD_BYTES, this.#aheadBytes * 2)
      else if (took > 1000) this.#aheadBytes = Math.max(MIN_AHEAD_BYTES, this.#aheadBytes / 2)
    }
    const atOnce = this.#peer.transport.sendAll(out, () => {
      taken()
      this.#turnBytes = 0
      if (!this.#closed) this.pump()
    })
    if (atOnce) taken()
    else this.#heads = []
    return true
  }

  #shift(entry: Entry): void {
    this.#forget(entry)
    this.#head += 1
    this.#fetched -= 1
    this.#fetchedBytes -= entry.block.length
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0
      this.#head = 0
      this.#byBlock = undefined
    } else if (this.#head > 512 && this.#head * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
  }

  #slices(entry: Entry, out: Uint8Array[]): void {
    const { lengthBytes } = this.#context.layout.files[entry.fileIndex]!
    const end = Math.min(entry.offset + entry.block.length, lengthBytes)
    let at = entry.offset
    for (const chunk of entry.chunks!) {
      const base = chunkOf(at) * CHUNK_BYTES
      const until = Math.min(end, base + CHUNK_BYTES)
      out.push(chunk.memory.view(at - base, until - base))
      at = until
    }
    // Beyond the end of the file: zeros, for clients that request whole blocks (libtorrent before 2.0.13 does with v2
    // torrents).
    const padding = entry.offset + entry.block.length - Math.max(at, entry.offset)
    if (padding > 0) out.push(ZEROS.subarray(0, padding))
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
