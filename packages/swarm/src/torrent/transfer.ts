// One file because the decision which block to ask of whom looks at all parts of a running transfer at once (picker,
// buffers, hashes, sources); the state itself lives in those parts.

import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { BLOCK_BYTES } from '@svc/metainfo'
import { Downloader, runRange } from '../download/downloader.ts'
import { PiecePicker, type Priority } from '../download/picker.ts'
import type { BlockRun, PieceBuffer } from '../download/piece-buffer.ts'
import { PieceHashes } from '../download/piece-hashes.ts'
import type { SlotPool } from '../download/slot-pool.ts'
import type { Verifier } from '../download/verifier.ts'
import { type Peer, protocolError } from '../peer/peer.ts'
import type { PendingRequest } from '../peer/requests.ts'
import type { FileState, TorrentStorage } from '../storage.ts'
import { HashServer } from '../upload/hash-server.ts'
import type { UploadLimiter } from '../upload/limiter.ts'
import type { ChunkSource, ReadCache } from '../upload/read-cache.ts'
import type { TokenBucket } from '../upload/token-bucket.ts'
import { UploadQueue } from '../upload/upload-queue.ts'
import {
  type BlockRef,
  formatBlockRef,
  formatHashes,
  formatHashRange,
  type HashRange,
  MAX_REQUEST_BYTES,
  MESSAGE
} from '../wire/messages.ts'
import { checkFile } from './file-check.ts'
import { FileProgress } from './file-progress.ts'
import { HashFetch } from './hash-fetch.ts'

/** What the engine shares among its torrents. */
export interface EngineParts {
  readonly pool: SlotPool
  readonly verifier: Verifier
  readonly cache: ReadCache
  readonly limiter: UploadLimiter
  readonly random: () => number
}

export interface TransferHooks {
  readonly peers: () => Iterable<Peer>
  readonly buckets: (peer: Peer) => readonly TokenBucket[]
  /** A source proved to lie; the label is for people. */
  readonly guilty: (sender: number, reason: string, piece: number | undefined) => void
  readonly piece: (piece: number) => void
  readonly file: (file: LayoutFile) => void
  /** Every file is in the storage. */
  readonly complete: () => void
  readonly lost: (file: LayoutFile, error: Error) => void
  readonly failed: (error: Error) => void
  /** There may be work for webseeds. */
  readonly work: () => void
}

/** A request that gets no answer for this long, and four times what its queue should take, is given to others. */
const REQUEST_TIMEOUT_MS = 10_000
const RATE_FLOOR = 16_384
const LEAVES_TIMEOUT_MS = 15_000
/** Hash requests of one peer that wait for an answer. */
const MAX_HASH_QUEUE = 64

/**
 * The exchange of one torrent's bytes, from the moment its layout is known: what we have, whom to ask for what, whom to send
 * what. Wires the state machines of `download/` and `upload/` to peers; decides nothing itself that they can decide.
 */
export class Transfer {
  readonly layout: TorrentLayout
  readonly hashes: PieceHashes
  readonly progress: FileProgress
  readonly picker: PiecePicker
  readonly downloader: Downloader
  readonly hashFetch: HashFetch
  readonly #storage: TorrentStorage
  readonly #hooks: TransferHooks
  readonly #parts: EngineParts
  readonly #server: HashServer
  readonly #source: ChunkSource
  readonly #uploads = new Map<number, UploadQueue>()
  readonly #hashQueue = new Map<number, number>()
  readonly #states = new Map<number, FileState>()
  readonly #fetch: boolean
  /** Answers to hash requests wait for it: what we have is not known before. */
  readonly #opened = Promise.withResolvers<void>()
  #fillScheduled = false
  #closed = false
  #started = false
  uploadedBytes = 0
  downloadedBytes = 0

  constructor(options: {
    readonly id: number
    readonly layout: TorrentLayout
    readonly storage: TorrentStorage
    readonly parts: EngineParts
    readonly hooks: TransferHooks
    /** False: seed only, nothing is ever requested. */
    readonly fetch: boolean
  }) {
    const { layout, storage, parts, hooks } = options
    this.layout = layout
    this.#storage = storage
    this.#hooks = hooks
    this.#parts = parts
    this.#fetch = options.fetch
    this.hashes = new PieceHashes(layout)
    this.progress = new FileProgress(layout, storage, {
      fileDone: (file) => this.#fileDone(file),
      fileRefused: (file) => {
        this.#parts.cache.forget(this.#source)
        for (let at = 0; at < file.pieceCount; at += 1) this.picker.reopen(file.firstPiece + at)
        this.moreWork()
      },
      failed: hooks.failed
    })
    this.picker = new PiecePicker(layout.pieceCount, parts.random)
    this.downloader = new Downloader({
      layout,
      picker: this.picker,
      pool: parts.pool,
      verifier: parts.verifier,
      hashes: this.hashes,
      hooks: {
        writer: (file) => this.progress.writer(file),
        pieceDone: (piece) => this.#pieceDone(piece),
        guilty: (sender, piece) => hooks.guilty(sender, `wrong bytes in piece ${piece}`, piece),
        leaves: (piece) => this.#leaves(piece),
        moreWork: () => this.moreWork(),
        failed: hooks.failed,
        cancel: (buffer, run, except) => this.#cancelOthers(buffer, run, except)
      }
    })
    this.hashFetch = new HashFetch(layout, {
      layerDone: (root, layer) => this.addLayer(root, layer),
      guilty: (peer) => hooks.guilty(peer.id, 'wrong hashes', undefined)
    })
    this.#source = { id: options.id, read: (file, offset, target) => storage.read(file, offset, target) }
    this.#server = new HashServer({
      layout,
      hashes: this.hashes,
      storage,
      have: this.progress.have,
      verifier: parts.verifier
    })
  }

  get have(): FileProgress['have'] {
    return this.progress.have
  }

  /** Nothing left to fetch. */
  get complete(): boolean {
    return this.#started && this.progress.filesLeft === 0
  }

  /** Asks the storage what it has. Afterwards peers can be told. Proven `layers` come from the caller. */
  async open(layers: ReadonlyMap<string, Uint8Array>): Promise<void> {
    await this.#storage.open(this.layout)
    for (const file of this.layout.files) {
      const state = await this.#storage.state(file)
      if (this.#closed) return
      if (state.kind === 'complete') this.progress.trust(file)
      else this.#states.set(file.index, state)
    }
    this.#started = true
    for (const [root, layer] of layers) this.hashes.set(root, layer)
    this.#opened.resolve()
  }

  /** Checks what is there of incomplete files, and opens the rest for fetching, file by file. */
  async takeStock(): Promise<void> {
    for (const file of this.layout.files) {
      if (this.progress.isDone(file)) continue
      if (file.pieceCount > 1 && !this.hashes.known(file)) {
        if ((await this.#server.layer(file)) === undefined) {
          if (this.#fetch) this.hashFetch.want(file)
          continue
        }
      }
      if (this.#closed) return
      await this.#admit(file)
    }
    this.hashFetch.pump(this.#hooks.peers())
    if (this.complete) this.#hooks.complete()
  }

  /** The file's pieces can be verified now: old bytes are checked, the rest may be fetched. */
  async #admit(file: LayoutFile): Promise<void> {
    if (file.pieceCount === 0) return this.progress.finish(file)
    const state = this.#states.get(file.index)
    this.#states.delete(file.index)
    if (state?.kind === 'partial' && state.ranges.length > 0) {
      await checkFile({
        file,
        layout: this.layout,
        ranges: state.ranges,
        hashes: this.hashes,
        storage: this.#storage,
        verifier: this.#parts.verifier,
        progress: this.progress,
        right: (piece) => this.#pieceDone(piece),
        closed: () => this.#closed
      })
    }
    if (this.#closed || !this.#fetch) return
    for (let piece = file.firstPiece; piece < file.firstPiece + file.pieceCount; piece += 1) {
      if (!this.have.has(piece)) this.picker.reopen(piece)
    }
    this.moreWork()
  }

  /** A proven piece layer. */
  addLayer(rootHex: string, layer: Uint8Array): void {
    const files = this.hashes.set(rootHex, layer)
    this.hashFetch.unwant(rootHex)
    for (const file of files) {
      if (!this.progress.isDone(file)) void this.#admit(file).catch((error: Error) => this.#hooks.failed(error))
    }
  }

  setPriority(file: LayoutFile, priority: Priority): void {
    for (let at = 0; at < file.pieceCount; at += 1) this.picker.setPriority(file.firstPiece + at, priority)
    this.moreWork()
  }

  // Fetching

  /** Whether the peer has something that we lack. */
  #interesting(peer: Peer): boolean {
    if (!this.#fetch || this.complete) return false
    if (peer.isSeed) return this.layout.pieceCount > this.have.count
    const theirs = peer.bits?.bytes
    if (theirs === undefined) return false
    const ours = this.have.bytes
    for (let at = 0; at < theirs.length; at += 1) if ((theirs[at]! & ~ours[at]!) !== 0) return true
    return false
  }

  peerJoined(peer: Peer): void {
    if (peer.hasAll || peer.bits?.complete === true) this.#seeds.add(peer.id)
    if (this.#seeds.has(peer.id)) this.picker.addSeed(1)
    else if (peer.bits !== undefined) this.picker.addPeer(peer.bits)
    peer.setInterested(this.#interesting(peer))
    this.fill(peer)
    this.hashFetch.pump([...this.#hooks.peers()])
  }

  /** Peers counted as seeds by the picker. */
  readonly #seeds = new Set<number>()

  peerHas(peer: Peer, piece: number | undefined): void {
    if (piece === undefined) {
      // First message of the peer: nothing was counted before.
      if (peer.isSeed) {
        this.#seeds.add(peer.id)
        this.picker.addSeed(1)
      } else this.picker.addPeer(peer.bits!)
      peer.setInterested(this.#interesting(peer))
    } else {
      if (!this.#seeds.has(peer.id)) this.picker.addHave(piece, 1)
      if (!this.have.has(piece) && this.#fetch && !this.complete) peer.setInterested(true)
    }
    this.fill(peer)
  }

  peerGone(peer: Peer): void {
    for (const request of peer.requests.all()) {
      if (!request.void) this.downloader.release(request.buffer, request.run, peer.id)
    }
    peer.requests.clear()
    this.downloader.sourceGone(peer.id)
    if (this.#seeds.delete(peer.id)) this.picker.addSeed(-1)
    else if (peer.bits !== undefined) this.picker.removePeer(peer.bits)
    peer.hashes.clear()
    this.hashFetch.gone(peer)
    this.#uploads.get(peer.id)?.close()
    this.#uploads.delete(peer.id)
    this.#hashQueue.delete(peer.id)
    this.moreWork()
  }

  peerChoke(peer: Peer): void {
    if (peer.peerChoking) this.downloader.share(peer.id)
    else this.fill(peer)
  }

  peerBlock(peer: Peer, request: PendingRequest): void {
    this.downloadedBytes += request.length
    this.downloader.arrived(request.buffer, request.run, peer.id)
    this.fill(peer)
  }

  peerRejected(peer: Peer, request: PendingRequest): void {
    this.downloader.release(request.buffer, request.run, peer.id)
    this.moreWork()
  }

  /** Asks a peer for as much as it can take. */
  fill(peer: Peer): void {
    if (!this.#fetch || this.#closed || peer.closed || peer.peerChoking || !peer.amInterested) return
    const { requests } = peer
    const unit = (peer.extended?.maxRequestBytes ?? BLOCK_BYTES) / BLOCK_BYTES
    while (requests.roomBytes() > 0) {
      const order = this.downloader.take({ id: peer.id, bits: peer.hasAll ? undefined : peer.bits }, unit)
      if (order === undefined) return
      const { begin, length } = runRange(order)
      const stale = requests.find(order.buffer.piece, begin)
      // The same block was asked for before and voided: its answer may still come, under this request.
      if (stale !== undefined) requests.remove(stale)
      peer.request({
        piece: order.buffer.piece,
        begin,
        length,
        run: order.run,
        buffer: order.buffer,
        sentAt: performance.now(),
        aheadBytes: requests.outstandingBytes + length,
        void: false
      })
    }
  }

  /** Asks all peers again, soon. */
  moreWork(): void {
    if (this.#fillScheduled || this.#closed || !this.#started) return
    this.#fillScheduled = true
    setImmediate(() => {
      this.#fillScheduled = false
      if (this.#closed) return
      for (const peer of this.#hooks.peers()) this.fill(peer)
      this.#hooks.work()
    })
  }

  #cancelOthers(buffer: PieceBuffer, run: BlockRun, except: number): void {
    const begin = run.first * BLOCK_BYTES
    const end = begin + buffer.runBytes(run)
    for (const peer of this.#hooks.peers()) {
      if (peer.id === except || peer.requests.live === 0) continue
      for (const request of [...peer.requests.all()]) {
        if (request.buffer !== buffer || request.begin < begin || request.begin + request.length > end) continue
        peer.cancel(request)
      }
    }
  }

  #leaves(piece: number): Promise<Uint8Array | undefined> {
    const leaves = this.hashFetch.leaves(piece, this.hashes.expected(piece)!, LEAVES_TIMEOUT_MS)
    this.hashFetch.pump([...this.#hooks.peers()])
    return leaves
  }

  #pieceDone(piece: number): void {
    if (!this.progress.piece(piece)) return
    for (const peer of this.#hooks.peers()) if (!peer.has(piece)) peer.sendHave(piece)
    this.#hooks.piece(piece)
  }

  #fileDone(file: LayoutFile): void {
    this.#hooks.file(file)
    if (!this.complete) return
    for (const peer of this.#hooks.peers()) peer.setInterested(false)
    this.#hooks.complete()
  }

  // Serving

  peerRequest(peer: Peer, block: BlockRef): void {
    const { piece, begin, length } = block
    if (
      piece >= this.layout.pieceCount ||
      length < 1 ||
      length > MAX_REQUEST_BYTES ||
      begin + length > this.layout.pieceLengthBytes
    ) {
      throw protocolError('request', 'a request outside the torrent')
    }
    if (peer.amChoking || !this.have.has(piece)) {
      if (peer.handshake.fast) peer.send(formatBlockRef(MESSAGE.reject, piece, begin, length))
      return
    }
    this.#upload(peer).add(block)
  }

  #upload(peer: Peer): UploadQueue {
    let queue = this.#uploads.get(peer.id)
    if (queue === undefined) {
      queue = new UploadQueue(
        peer,
        {
          layout: this.layout,
          source: this.#source,
          cache: this.#parts.cache,
          limiter: this.#parts.limiter,
          lost: (index, error) => this.#lost(index, error),
          sent: (bytes) => {
            this.uploadedBytes += bytes
          }
        },
        this.#hooks.buckets(peer)
      )
      this.#uploads.set(peer.id, queue)
    }
    return queue
  }

  peerCancel(peer: Peer, block: BlockRef): void {
    this.#uploads.get(peer.id)?.cancel(block)
  }

  choke(peer: Peer, choke: boolean, nowMs: number): void {
    if (choke) this.#uploads.get(peer.id)?.clear()
    peer.setChoking(choke, nowMs)
  }

  /** Reading failed: the file is not offered any more, requests for it are rejected. */
  #lost(fileIndex: number, error: Error): void {
    const file = this.layout.files[fileIndex]!
    if (!this.have.has(file.firstPiece)) return
    this.progress.lose(file)
    for (const queue of this.#uploads.values()) queue.dropFile(fileIndex)
    this.#hooks.lost(file, error)
  }

  peerHashRequest(peer: Peer, range: HashRange): void {
    const waiting = this.#hashQueue.get(peer.id) ?? 0
    const reject = (): void => peer.send(formatHashRange(MESSAGE.hashReject, range))
    // One who does not read what it asks for gets no more.
    if (waiting >= MAX_HASH_QUEUE || peer.transport.bufferedBytes > 4 * 1024 * 1024) return reject()
    this.#hashQueue.set(peer.id, waiting + 1)
    const settle = (hashes: Uint8Array | undefined): void => {
      if (peer.closed) return
      this.#hashQueue.set(peer.id, this.#hashQueue.get(peer.id)! - 1)
      if (hashes === undefined) return reject()
      for (const bucket of this.#hooks.buckets(peer)) bucket.spend(hashes.length + 53)
      peer.send(formatHashes(range, hashes))
    }
    this.#opened.promise
      .then(() => (this.#closed ? undefined : this.#server.answer(range)))
      .then(settle, () => settle(undefined))
  }

  uploadStalled(peer: Peer, sinceMs: number): boolean {
    const since = this.#uploads.get(peer.id)?.stalledSince
    return since !== undefined && since < sinceMs
  }

  // Time

  /** About once a second. */
  tick(nowMs: number): void {
    const peers = [...this.#hooks.peers()]
    this.hashFetch.tick(peers, nowMs)
    for (const peer of peers) {
      this.#timeOut(peer, nowMs)
      if (peer.amInterested && !this.#interesting(peer)) peer.setInterested(false)
      this.fill(peer)
    }
  }

  #timeOut(peer: Peer, nowMs: number): void {
    if (peer.requests.live === 0) return
    const rate = Math.max(RATE_FLOOR, peer.down.bytesPerSecond)
    let late = false
    for (const request of peer.requests.all()) {
      if (request.void) continue
      // Requests are answered in order: the first one tells.
      const allowed = Math.max(REQUEST_TIMEOUT_MS, (4000 * request.aheadBytes) / rate)
      late = nowMs - request.sentAt > allowed
      break
    }
    if (!late) return
    peer.snubbed = true
    peer.requests.collapse()
    for (const request of [...peer.requests.all()]) {
      if (request.void) continue
      peer.cancel(request)
      this.downloader.release(request.buffer, request.run, peer.id)
    }
    this.downloader.share(peer.id)
    this.moreWork()
  }

  close(): void {
    this.#closed = true
    this.#opened.resolve()
    this.progress.close()
    this.downloader.close()
    this.hashFetch.close()
    for (const queue of this.#uploads.values()) queue.close()
    this.#uploads.clear()
    this.#parts.cache.forget(this.#source)
  }

  checkInvariants(): void {
    this.downloader.checkInvariants()
    this.progress.checkInvariants()
    this.picker.checkInvariants()
    for (const queue of this.#uploads.values()) queue.checkInvariants()
    for (const peer of this.#hooks.peers()) peer.checkInvariants()
  }
}
