// Downloading: one file because what is missing, who has it and who is asked are one state. The life of what is missing:
//
//   1. A file whose piece hashes are known is opened for fetching (`open`); for others the piece layer is first
//      requested from peers (`HashFetch`), and arrives as a `layer` event.
//   2. Blocks are requested: from peers as their window allows (`fill`), from webseeds as whole ranges (`Webseed`). The
//      Downloader chooses the blocks, the picker the pieces to start.
//   3. Answers go to the Downloader; blocks of refused, late or lost requests become free, and other sources are asked
//      (`work`).
//   4. For a wrong piece the proven leaves are requested from other peers; they show which blocks are bad and who sent
//      them.
//   5. When every file is done the phase closes and releases this object, so that a seed holds none of its memory.
//
// Verified pieces belong to `FileProgress`, piece hashes to `PieceHashes`, outstanding requests to the peers.

import { BLOCK_BYTES, type LayoutFile } from '@svc/metainfo'
import { Downloader, type DownloaderEvents } from '../download/downloader.ts'
import { FAR_AT_ONCE, FarSources, nodeHash, type WebseedAllowance } from '../download/far-sources.ts'
import { PiecePicker, type PieceRange, type Priority } from '../download/picker.ts'
import type { EventOf } from '../events.ts'
import { guarded, reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { type PendingRequest, pendingRequest } from '../peer/requests.ts'
import type { PieceBuffer } from '../piece/piece-buffer.ts'
import type { HashRange } from '../wire/messages.ts'
import { DownloadTurns } from './download-turns.ts'
import type { TorrentParts } from './environment.ts'
import { HashFetch } from './hash-fetch.ts'
import { RefusingPeers } from './refusals.ts'
import { Webseeds } from './webseeds.ts'
import { isFar } from './zone.ts'

/** A request is reassigned when it is unanswered for this long and for four times what its queue should take. */
const REQUEST_TIMEOUT_MS = 10_000
const RATE_FLOOR = 16_384
const LEAVES_TIMEOUT_MS = 15_000

type PartEvents = DownloaderEvents | 'layer' | 'received' | 'warning'

/** Downloads from peers and webseeds until nothing is missing. Invariant: nothing is requested after `close`. */
export class Leeching {
  downloadedBytes = 0
  readonly #deps: TorrentParts
  readonly #picker: PiecePicker
  readonly #downloader: Downloader
  /** Piece layers that have to come from peers. */
  readonly hashFetch: HashFetch
  readonly webseeds: Webseeds
  /** Peers that the picker counts as seeds. */
  readonly #seeds = new Set<number>()
  /** Peers that are asked sparingly. */
  readonly #far = new Set<number>()
  /** Peers that the picker counts as near: their pieces are not requested from far sources. */
  readonly #near = new Set<number>()
  /** Peers that let a request time out and have sent nothing since. */
  readonly #mute = new Set<number>()
  readonly #refusing = new RefusingPeers()
  readonly #turns: DownloadTurns
  readonly #farSources: FarSources
  /** By the file's index, where it is not 1. */
  readonly #priorities = new Map<number, Priority>()
  /** Files with priority 0 whose piece hashes are unknown, by index: these are requested once the file is wanted. */
  readonly #passedOver = new Set<number>()
  #hastened: readonly PieceRange[] = []
  #asking = false
  #closed = false

  constructor(deps: TorrentParts) {
    const { env, layout } = deps
    this.#deps = deps
    const emit = (event: EventOf<PartEvents>): void => this.#take(event)
    this.#picker = new PiecePicker(layout.pieceCount, env.random)
    this.#picker.inOrder = true
    this.#farSources = new FarSources(nodeHash(env.peerId), this.#nowMs, env.random(), layout.pieceLengthBytes)
    this.#downloader = new Downloader({ ...deps, picker: this.#picker, emit })
    this.hashFetch = new HashFetch(layout, env.clock, emit)
    this.#turns = new DownloadTurns(env.clock, env.downloads)
    this.webseeds = new Webseeds({
      ...deps,
      downloader: this.#downloader,
      allowance: () => this.#webseedAllowance(),
      farSources: this.#farSources,
      hastened: () => this.#hastened,
      emit
    })
  }

  get unverifiedBytes(): number {
    return this.#downloader.unverifiedBytes
  }

  get #nowMs(): number {
    return this.#deps.env.clock.monotonic()
  }

  /** Handles the events of its members, or passes them on. */
  #take(event: EventOf<PartEvents>): void {
    switch (event.kind) {
      case 'work':
        return this.moreWork()
      case 'received':
        this.downloadedBytes += event.bytes
        return
      case 'answered':
        return this.#cancelElsewhere(event)
      case 'piece-wrong':
        return void this.#findBadBlocks(event.buffer, event.leaves).catch(reportDefect)
      case 'bad-data':
        if (!this.webseeds.bad(event)) this.#deps.emit(event)
        return
      case 'piece-verified':
      case 'layer':
      case 'warning':
      case 'failed':
        return this.#deps.emit(event)
    }
  }

  // what is missing

  /** The hashes of the file's pieces are known and its existing bytes are checked: the rest may be fetched. */
  open(file: LayoutFile): void {
    const { have } = this.#deps.progress
    for (let piece = file.firstPiece; piece < file.firstPiece + file.pieceCount; piece += 1)
      if (!have.has(piece)) this.#picker.reopen(piece)
    this.moreWork()
  }

  /** The file's piece hashes are unknown: they are requested from peers, unless it has priority 0. */
  wantHashes(file: LayoutFile): void {
    if (this.#priorities.get(file.index) === 0) this.#passedOver.add(file.index)
    else this.hashFetch.want(file)
  }

  setPriority(file: LayoutFile, priority: Priority): void {
    this.#priorities.set(file.index, priority)
    for (let at = 0; at < file.pieceCount; at += 1) this.#picker.setPriority(file.firstPiece + at, priority)
    this.hasten(this.#hastened)
    if (priority > 0 && this.#passedOver.delete(file.index)) this.hashFetch.want(file)
  }

  /** Somebody waits for these pieces: they come before all others that are wanted. Replaces the earlier ones. */
  hasten(ranges: readonly PieceRange[]): void {
    this.#setPriorities(this.#hastened, (usual) => usual)
    this.#hastened = ranges
    this.#setPriorities(ranges, (usual) => (usual === 0 ? 0 : 3))
    this.moreWork()
  }

  #setPriorities(ranges: readonly PieceRange[], of: (usual: Priority) => Priority): void {
    for (const { firstPiece, endPiece } of ranges) {
      const usual = this.#priorities.get(this.#deps.layout.fileOf(firstPiece).index) ?? 1
      for (let piece = firstPiece; piece < endPiece; piece += 1) this.#picker.setPriority(piece, of(usual))
    }
  }

  // webseeds

  /** In a fleet all peers want the same: webseeds give the pieces that no peer has, and the rest when no peer gives. */
  #webseedAllowance(): WebseedAllowance | undefined {
    if (this.#deps.env.trusted.isEmpty) return { scattered: !this.#allAreSeeds, sparing: undefined }
    this.#noteNear()
    return this.#farSources.allowance(this.#nowMs, this.#near.size === 0)
  }

  // peers

  /** Blocks may be requested from the peer from now on. */
  joined(peer: Peer): void {
    if (isFar(peer, this.#deps.env.zone)) this.#far.add(peer.id)
    if (this.#isNear(peer)) this.#near.add(peer.id)
    this.#count(peer)
    peer.setInterested(this.#interesting(peer))
    this.fill(peer)
    this.hashFetch.pump(this.#deps.peers.values())
  }

  /**
   * Whether its pieces are not requested from far sources, and its turn to bring in pieces is waited for. In a fleet only trusted
   * peers count: a stranger may never send anything.
   */
  #isNear(peer: Peer): boolean {
    const { trusted } = this.#deps.env
    return (trusted.isEmpty || peer.trusted) && !this.#far.has(peer.id) && !this.#mute.has(peer.id)
  }

  #count(peer: Peer): void {
    const near = this.#near.has(peer.id)
    if (peer.pieces.isSeed) {
      this.#seeds.add(peer.id)
      this.#picker.addSeed(1, near)
      this.#farSources.gone(peer.id)
    } else {
      if (peer.pieces.bits !== undefined) this.#picker.addPeer(peer.pieces.bits, 1, near)
      if (near) this.#farSources.joined(peer.id, nodeHash(peer.handshake.peerId))
    }
    this.#picker.inOrder = this.#allAreSeeds
  }

  /** Every peer has announced all pieces. */
  get #allAreSeeds(): boolean {
    return this.#seeds.size === this.#deps.peers.size
  }

  #uncount(peer: Peer): void {
    const near = this.#near.has(peer.id)
    if (this.#seeds.delete(peer.id)) this.#picker.addSeed(-1, near)
    else if (peer.pieces.bits !== undefined) this.#picker.addPeer(peer.pieces.bits, -1, near)
    this.#farSources.gone(peer.id)
  }

  /** The peer has named its zone, or none. */
  stands(peer: Peer): void {
    if (!this.#deps.peers.has(peer.id)) return
    if (isFar(peer, this.#deps.env.zone)) this.#far.add(peer.id)
    else this.#far.delete(peer.id)
    this.#place(peer)
  }

  /** Counts the peer anew if it became near, or is near no longer. */
  #place(peer: Peer): void {
    const near = this.#isNear(peer)
    if (!this.#deps.peers.has(peer.id) || near === this.#near.has(peer.id)) return
    this.#uncount(peer)
    if (near) this.#near.add(peer.id)
    else this.#near.delete(peer.id)
    this.#count(peer)
  }

  /** The peer has one more piece, or (undefined: nothing was counted before) announced its whole set. */
  pieces(peer: Peer, piece: number | undefined): void {
    if (piece === undefined) {
      this.#count(peer)
      peer.setInterested(this.#interesting(peer))
    } else {
      if (!this.#seeds.has(peer.id)) {
        const near = this.#near.has(peer.id)
        if (near && this.#picker.isUnshared(piece)) this.#farSources.delivered(peer.id)
        this.#picker.addHave(piece, 1, near)
      }
      if (!this.#deps.progress.have.has(piece)) peer.setInterested(true)
    }
    this.fill(peer)
  }

  #interesting(peer: Peer): boolean {
    const { have } = this.#deps.progress
    if (peer.pieces.isSeed) return !have.complete
    const theirs = peer.pieces.bits?.bytes
    if (theirs === undefined) return false
    const ours = have.bytes
    for (let at = 0; at < theirs.length; at += 1) if ((theirs[at]! & ~ours[at]!) !== 0) return true
    return false
  }

  choke(peer: Peer): void {
    if (peer.peerChoking) this.#downloader.share(peer.id)
    // soon, and once: a peer may choke and unchoke thousands of times in one read.
    else this.moreWork()
  }

  block(peer: Peer, request: PendingRequest): void {
    this.downloadedBytes += request.length
    const now = peer.downloadActiveAt
    this.#downloader.arrived(request.buffer, request.run, peer.id, now)
    this.#refusing.forget(peer.id)
    if (this.#mute.delete(peer.id)) this.#place(peer)
    if (this.#near.has(peer.id)) this.#farSources.nearGave(now, request.length)
    else if (this.#far.has(peer.id) && request.buffer.sealed) this.#farSources.brought(now - request.buffer.begunAt)
    if (peer.requests.wantsMore) this.fill(peer)
  }

  refused(peer: Peer, request: PendingRequest): void {
    this.#downloader.release(request.buffer, request.run, peer.id)
    // a peer that chokes us refuses all outstanding requests.
    if (!peer.peerChoking) this.#refusing.refused(peer.id, this.#nowMs)
    this.moreWork()
  }

  hashesAnswered(peer: Peer, range: HashRange, hashes: Uint8Array | undefined): void {
    this.hashFetch.answer(peer, range, hashes)
    this.hashFetch.pump(this.#deps.peers.values())
  }

  gone(peer: Peer): void {
    for (const request of peer.requests.all()) this.#downloader.release(request.buffer, request.run, peer.id)
    peer.requests.clear()
    this.#downloader.share(peer.id)
    this.#uncount(peer)
    for (const those of [this.#far, this.#near, this.#mute]) those.delete(peer.id)
    this.#turns.leave(peer.id)
    this.#refusing.forget(peer.id)
    this.#picker.inOrder = this.#allAreSeeds
    peer.hashes.clear()
    this.hashFetch.gone(peer)
    this.moreWork()
  }

  #mayAsk(peer: Peer, nowMs: number): boolean {
    if (this.#closed || peer.closed || peer.peerChoking || !peer.amInterested) return false
    return !this.#refusing.isPaused(peer.id, nowMs)
  }

  fill(peer: Peer): void {
    const now = this.#nowMs
    if (!this.#mayAsk(peer, now)) return
    const { requests } = peer
    const maxBlocks = (peer.extended?.maxRequestBytes ?? BLOCK_BYTES) / BLOCK_BYTES
    const unsharedOnly = this.#far.has(peer.id) && !this.#farSources.isStarving(now)
    if (unsharedOnly && requests.live === 0 && this.#farAsked() >= FAR_AT_ONCE) return
    const bits = peer.pieces.hasAll ? undefined : peer.pieces.bits
    const source = { id: peer.id, bits, ...(unsharedOnly && { sparing: this.#farSources.mine(now) }) }
    const added: PendingRequest[] = []
    const again = guarded(() => this.fill(peer))
    for (let room = requests.roomBytes(); room > 0; room = requests.roomBytes()) {
      const turnBytes = this.#turns.leftFor(peer.id, again)
      if (turnBytes === 0) break
      const most = peer.trusted ? Math.min(room, requests.requestBytes) : requests.requestBytes
      const blocks = Math.min(maxBlocks, Math.ceil(Math.min(most, turnBytes) / BLOCK_BYTES))
      const order = this.#downloader.take(source, blocks)
      if (order === undefined) break
      if (unsharedOnly) this.#farSources.took(order.buffer.piece, now, order.run.first > 0)
      const request = pendingRequest(order, now, requests.outstandingBytes)
      const stale = requests.find(request.piece, request.begin)
      // the same block was requested before and cancelled: a late answer will count for this request.
      if (stale !== undefined) requests.remove(stale)
      requests.add(request)
      added.push(request)
      this.#turns.took(peer.id, request.length)
    }
    peer.sendRequests(added)
  }

  /**
   * While near peers have nothing that we lack, that they give nothing does not count against them. When every piece is
   * under way it does: the last ones must not wait for a near peer that has stopped.
   */
  #noteNear(): void {
    const { openCount } = this.#picker
    if (openCount > 0 && openCount === this.#picker.openUnshared) this.#farSources.nearHasNothing(this.#nowMs)
  }

  #farAsked(): number {
    let asked = 0
    for (const id of this.#far) if ((this.#deps.peers.get(id)?.requests.live ?? 0) > 0) asked += 1
    return asked
  }

  /** Asks all sources again, soon. */
  moreWork(): void {
    if (this.#asking || this.#closed) return
    this.#asking = true
    setImmediate(
      guarded(() => {
        this.#asking = false
        if (this.#closed) return
        for (const peer of this.#deps.peers.values()) this.fill(peer)
        this.webseeds.pump()
      })
    )
  }

  #cancelElsewhere({ buffer, run, sender }: EventOf<'answered'>): void {
    const begin = run.first * BLOCK_BYTES
    const end = begin + buffer.runBytes(run)
    for (const peer of this.#deps.peers.values()) {
      if (peer.id === sender || peer.requests.live === 0) continue
      for (const request of [...peer.requests.all()]) {
        if (request.buffer !== buffer || request.begin < begin || request.begin + request.length > end) continue
        peer.cancel(request)
      }
    }
  }

  async #findBadBlocks(buffer: PieceBuffer, leaves: Uint8Array): Promise<void> {
    let proven: Uint8Array | undefined
    // with a single sender the culprit is known.
    if (buffer.senders().size > 1) {
      const expected = this.#deps.hashes.expected(buffer.piece)!
      const asked = this.hashFetch.leaves(buffer.piece, expected, LEAVES_TIMEOUT_MS)
      this.hashFetch.pump(this.#deps.peers.values())
      proven = await asked
    }
    this.#downloader.judge(buffer, leaves, proven)
  }

  // time

  tick(nowMs: number): void {
    const peers = [...this.#deps.peers.values()]
    this.hashFetch.tick(peers, nowMs)
    this.#noteNear()
    const sharers = peers.filter(({ requests }) => requests.live > 0).length
    const overdue = this.#downloader.overdue(nowMs)
    for (const peer of peers) {
      peer.requests.sharers = Math.max(1, sharers)
      if (overdue.includes(peer.id)) this.#takeBack(peer)
      else this.#timeOut(peer, nowMs)
      if (peer.amInterested && !this.#interesting(peer)) peer.setInterested(false)
      this.fill(peer)
    }
    this.webseeds.tick(nowMs)
  }

  #timeOut(peer: Peer, nowMs: number): void {
    // peers answer in order, so only the oldest request needs checking.
    const oldest = peer.requests.oldest()
    if (oldest === undefined) return
    const rate = Math.max(RATE_FLOOR, peer.down.bytesPerSecond)
    if (nowMs - oldest.sentAt <= Math.max(REQUEST_TIMEOUT_MS, (4000 * oldest.aheadBytes) / rate)) return
    this.#takeBack(peer)
  }

  /** Requests to the peer go to others instead. */
  #takeBack(peer: Peer): void {
    peer.snubbed = true
    this.#mute.add(peer.id)
    this.#place(peer)
    peer.requests.collapse()
    for (const request of [...peer.requests.all()]) {
      if (request.void) continue
      peer.cancel(request)
      this.#downloader.release(request.buffer, request.run, peer.id)
    }
    this.#downloader.share(peer.id)
    this.moreWork()
  }

  /** Resolves when it writes nothing more to the storage. */
  close(): Promise<void> {
    this.#closed = true
    this.webseeds.close()
    for (const peer of this.#deps.peers.values()) {
      if (peer.closed) continue
      for (const request of [...peer.requests.all()]) peer.cancel(request)
      peer.setInterested(false)
    }
    this.hashFetch.close()
    this.#turns.close()
    return this.#downloader.close()
  }
}
