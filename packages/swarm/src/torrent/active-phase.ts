// A torrent whose metadata is known. The order of things:
//
//   1. `open` opens the storage and asks it file by file what it has. Peers that connect meanwhile wait.
//   2. Then every peer is told what we have (`admit`), and from there on each new piece (`piece-verified`).
//   3. `takeStock`: old bytes of incomplete files are hashed; what is missing is opened for fetching, or, where its piece
//      hashes are unknown, these are fetched first (`layer`).
//   4. With the last file (`file-done`) the torrent is complete: Leeching is closed and let go, Seeding stays.
//
// Owns which peers were told what we have (`#told`), and the phase's state. What is had belongs to `FileProgress`, what the
// pieces hash to `PieceHashes`, what is taken to `Leeching`, what is given to `Seeding`; connections belong to the torrent.

import {
  filesWithLayers,
  type LayoutFile,
  MetainfoError,
  type TorrentInfo,
  TorrentLayout,
  verifyPieceLayer
} from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import { FileProgress } from '../download/file-progress.ts'
import type { Priority } from '../download/picker.ts'
import { PieceHashes } from '../download/piece-hashes.ts'
import { SwarmError } from '../errors.ts'
import type { Emit, EventOf, PeerEvent, PieceEvent } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import type { ByteRanges } from '../storage.ts'
import type { TokenBucket } from '../upload/token-bucket.ts'
import { parseMetadataMessage } from '../wire/extensions.ts'
import type { TorrentEnvironment } from './environment.ts'
import { checkFile } from './file-check.ts'
import { Leeching } from './leeching.ts'
import { Seeding } from './seeding.ts'
import type { TorrentOptions } from './torrent-options.ts'

/** The events that an ActivePhase emits. */
type ActivePhaseEvents = 'piece-verified' | 'file-done' | 'complete' | 'bad-data' | 'warning' | 'failed'

export interface ActivePhaseDeps {
  readonly env: TorrentEnvironment
  readonly options: TorrentOptions
  readonly info: TorrentInfo
  readonly bucket: TokenBucket
  readonly webseeds: readonly string[]
  readonly emit: Emit<ActivePhaseEvents>
}

/**
 * A torrent whose metadata is known.
 * Invariants: a peer is in `#told` exactly from `admit` to its `closed`; there is a Leeching until the torrent is complete,
 * unless it is `seedOnly`, which has none.
 */
export class ActivePhase {
  readonly info: TorrentInfo
  readonly layout: TorrentLayout
  readonly #deps: ActivePhaseDeps
  readonly #hashes: PieceHashes
  readonly #progress: FileProgress
  readonly #seeding: Seeding
  #leeching: Leeching | undefined
  /** Peers that know what we have: only those are asked and served. */
  readonly #told = new Map<number, Peer>()
  /** Candidates for checking, by file; what is left of it after stock-taking waits for piece hashes. */
  readonly #partial = new Map<number, ByteRanges>()
  /** Files that nobody wants (priority 0): their piece hashes are not asked for. */
  readonly #unwanted = new Set<number>()
  /** Those of them that stock-taking passed over. */
  readonly #passedOver = new Set<number>()
  /** What we have is known: hash requests wait for it. */
  readonly #opened = Promise.withResolvers<void>()
  #isOpen = false
  #stockTaken = false
  /** Every file was there once; one that is lost later is not fetched again. */
  #finished = false
  #downloadedBytes = 0
  #uploadedBytes = 0
  #closed = false
  /** Threads may still write after Leeching is gone. */
  #written: Promise<void> = Promise.resolve()

  constructor(deps: ActivePhaseDeps) {
    const { env, options, info, bucket } = deps
    this.#deps = deps
    this.info = info
    this.layout = new TorrentLayout(info)
    this.#hashes = new PieceHashes(this.layout)
    const emit = (event: PieceEvent | EventOf<'bad-data' | 'warning' | 'failed'>): void => this.#takePiece(event)
    this.#progress = new FileProgress(this.layout, options.storage, emit)
    this.#seeding = new Seeding({
      env,
      id: env.nextId(),
      info,
      layout: this.layout,
      storage: options.storage,
      hashes: this.#hashes,
      progress: this.#progress,
      bucket,
      upload: options.upload !== false,
      disclose: options.disclose !== false,
      emit
    })
    if (options.seedOnly !== true)
      this.#leeching = new Leeching({
        env,
        layout: this.layout,
        hashes: this.#hashes,
        progress: this.#progress,
        peers: this.#told,
        emit
      })
  }

  // What the torrent shows

  get state(): 'checking' | 'fetching' | 'seeding' {
    if (this.#finished || (this.#stockTaken && this.#deps.options.seedOnly === true)) return 'seeding'
    return this.#stockTaken ? 'fetching' : 'checking'
  }

  /** Undefined until the storage was asked: peers are not greeted before. */
  get have(): Bitfield | undefined {
    return this.#isOpen ? this.#progress.have : undefined
  }

  /** Every file is in the storage. */
  get complete(): boolean {
    return this.#isOpen && this.#progress.filesLeft === 0
  }

  get verifiedBytes(): number {
    return this.#progress.verifiedBytes
  }

  get downloadedBytes(): number {
    return this.#leeching?.downloadedBytes ?? this.#downloadedBytes
  }

  get uploadedBytes(): number {
    return this.#uploadedBytes
  }

  /** Rate in bytes per second, and how many are answering. */
  get webseedStatus(): { readonly downloadRate: number; readonly active: number } {
    return this.#leeching?.webseedStatus ?? { downloadRate: 0, active: 0 }
  }

  has(piece: number): boolean {
    return this.#progress.have.has(piece)
  }

  setPriority(file: LayoutFile, priority: Priority): void {
    this.#leeching?.setPriority(file, priority)
    if (priority === 0) this.#unwanted.add(file.index)
    else {
      this.#unwanted.delete(file.index)
      if (this.#passedOver.delete(file.index)) this.#leeching?.wantHashes(file)
    }
  }

  // Beginning

  /** Asks the storage what it has; afterwards peers can be greeted. @throws what the storage throws. */
  async open(): Promise<void> {
    const { storage } = this.#deps.options
    await storage.open(this.layout)
    for (const file of this.layout.files) {
      const state = await storage.state(file)
      if (this.#closed) return
      if (state.kind === 'complete') this.#progress.trust(file)
      else this.#partial.set(file.index, state.ranges)
    }
    this.#useGivenLayers()
    this.#isOpen = true
    this.#opened.resolve()
  }

  #useGivenLayers(): void {
    const given = this.#deps.options.pieceLayers
    if (given === undefined) return
    for (const [root, file] of filesWithLayers(this.info)) {
      const layer = given.get(root)
      if (layer === undefined) continue
      if (verifyPieceLayer(layer, file.piecesRoot!, file.length, this.info.pieceLength)) this.#hashes.set(root, layer)
      else this.#warn('layers', file.path, 'the piece layer given does not fold to its root')
    }
  }

  /** Checks what is there of incomplete files, and opens the rest for fetching, file by file. @throws what the storage throws. */
  async takeStock(): Promise<void> {
    for (const file of this.layout.files) {
      if (this.#progress.isDone(file)) continue
      if (this.#hashes.known(file)) await this.#admitFile(file)
      else if (this.#unwanted.has(file.index)) this.#passedOver.add(file.index)
      else this.#leeching?.wantHashes(file)
      if (this.#closed) return
    }
    this.#stockTaken = true
    if (this.complete) return this.#finish()
    this.#leeching?.startWebseeds(this.#deps.webseeds)
    this.#leeching?.moreWork()
  }

  /** The file's pieces can be verified now: old bytes are checked, the rest may be fetched. */
  async #admitFile(file: LayoutFile): Promise<void> {
    if (file.pieceCount === 0) return this.#progress.finish(file)
    const ranges = this.#partial.get(file.index) ?? []
    this.#partial.delete(file.index)
    if (ranges.length > 0) {
      await checkFile({
        file,
        layout: this.layout,
        ranges,
        hashes: this.#hashes,
        storage: this.#deps.options.storage,
        verifier: this.#deps.env.verifier,
        progress: this.#progress,
        right: (piece) => this.#pieceVerified(piece),
        closed: () => this.#closed
      })
    }
    if (!this.#closed) this.#leeching?.open(file)
  }

  #warn(kind: 'layers' | 'storage', source: string, message: string): void {
    this.#deps.emit({ kind: 'warning', warning: { kind, source, message } })
  }

  // Peers

  /** The peer was greeted with `have`, or has to hear of it now. */
  admit(peer: Peer): void {
    this.#told.set(peer.id, peer)
    this.#leeching?.joined(peer)
    if (peer.peerInterested) this.#seeding.interest(peer, this.#peers, this.state === 'fetching')
    this.#closeIfPointless(peer)
  }

  get #peers(): readonly Peer[] {
    return [...this.#told.values()]
  }

  /** What a peer noticed. @throws SwarmError `E_PROTOCOL`: the peer broke the protocol. */
  take(event: PeerEvent): void {
    const { peer } = event
    switch (event.kind) {
      case 'extended':
        return this.#closeIfPointless(peer)
      case 'pieces':
        if (!this.#told.has(peer.id)) return
        this.#leeching?.pieces(peer, event.piece)
        return this.#closeIfPointless(peer)
      case 'interest':
        if (this.#told.has(peer.id)) this.#seeding.interest(peer, this.#peers, this.state === 'fetching')
        return
      case 'choke':
        if (this.#told.has(peer.id)) this.#leeching?.choke(peer)
        return
      case 'block':
        return this.#leeching?.block(peer, event.request)
      case 'refused':
        return this.#leeching?.refused(peer, event.request)
      case 'hashes':
        return this.#leeching?.hashesAnswered(peer, event.range, event.hashes)
      case 'request':
        if (!this.#told.has(peer.id)) throw protocolError('request', 'a request before it was told of any piece')
        return this.#seeding.request(peer, event.block)
      case 'cancel':
        return this.#seeding.cancel(peer, event.block)
      case 'hash-request':
        return this.#seeding.hashRequest(peer, event.range, this.#opened.promise)
      case 'extension': {
        const message = event.extension === 'ut_metadata' ? parseMetadataMessage(event.payload) : undefined
        if (message?.kind === 'request') this.#seeding.metadataRequest(peer, message.piece)
        return
      }
      case 'closed':
        if (this.#told.delete(peer.id)) this.#leeching?.gone(peer)
        return this.#seeding.gone(peer, this.#peers, this.state === 'fetching')
    }
  }

  /** Two seeds have nothing to say to each other. */
  #closeIfPointless(peer: Peer): void {
    if (this.complete && peer.isSeed && peer.extended !== undefined) peer.close()
  }

  // Pieces and files

  #takePiece(event: PieceEvent | EventOf<'bad-data' | 'warning' | 'failed'>): void {
    switch (event.kind) {
      case 'piece-verified':
        return this.#pieceVerified(event.piece)
      case 'layer':
        return this.#layerKnown(event.rootHex, event.layer)
      case 'file-done':
        this.#deps.emit(event)
        // During stock-taking the end of it decides.
        if (this.complete && this.#stockTaken) this.#finish()
        return
      case 'file-refused':
        this.#seeding.forgetCached()
        return this.#leeching?.open(event.file)
      case 'file-lost':
        return this.#fileLost(event.fileIndex, event.error)
      case 'sent':
        this.#uploadedBytes += event.bytes
        return
      case 'bad-data':
      case 'warning':
      case 'failed':
        if (!this.#closed) this.#deps.emit(event)
        return
      default: // decided by Leeching
    }
  }

  #pieceVerified(piece: number): void {
    if (!this.#progress.piece(piece)) return
    for (const peer of this.#told.values()) if (!peer.has(piece)) peer.sendHave(piece)
    this.#deps.emit({ kind: 'piece-verified', piece })
  }

  #layerKnown(rootHex: string, layer: Uint8Array): void {
    this.#leeching?.hashesKnown(rootHex)
    for (const file of this.#hashes.set(rootHex, layer)) {
      if (this.#progress.isDone(file)) continue
      this.#admitFile(file).catch((error: unknown) => {
        if (!this.#closed) this.#deps.emit({ kind: 'failed', error: storageError(error) })
      })
    }
  }

  /** Reading failed: the file is not offered any more, requests for it are rejected. */
  #fileLost(fileIndex: number, error: Error): void {
    const file = this.layout.files[fileIndex]!
    if (!this.#progress.have.has(file.firstPiece)) return
    this.#progress.lose(file)
    this.#seeding.dropFile(fileIndex)
    this.#warn('storage', file.path, error.message)
  }

  #finish(): void {
    if (this.#finished) return
    this.#finished = true
    if (this.#leeching !== undefined) {
      this.#downloadedBytes = this.#leeching.downloadedBytes
      this.#written = this.#leeching.close()
      this.#leeching = undefined
    }
    for (const peer of this.#peers) this.#closeIfPointless(peer)
    this.#deps.emit({ kind: 'complete' })
  }

  // Time

  /** About once a second. */
  tick(nowMs: number): void {
    this.#leeching?.tick(nowMs)
    this.#seeding.tick(this.#peers, this.state === 'fetching', nowMs)
  }

  /** True when the peer asked for blocks and its socket has taken nothing since then. */
  uploadStalled(peer: Peer, sinceMs: number): boolean {
    return this.#seeding.stalled(peer, sinceMs)
  }

  /** Resolves when nothing writes to the storage any more. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    this.#opened.resolve()
    this.#progress.close()
    this.#seeding.close()
    await Promise.all([this.#written, this.#leeching?.close()])
  }

  checkInvariants(): void {
    this.#progress.checkInvariants()
    this.#leeching?.checkInvariants()
    this.#seeding.checkInvariants()
    for (const peer of this.#told.values()) {
      if (peer.closed) throw new Error('a closed peer is in use')
      peer.checkInvariants()
    }
  }
}

/** What makes a torrent fail when its storage throws. */
export const storageError = (cause: unknown): SwarmError | MetainfoError =>
  cause instanceof SwarmError || cause instanceof MetainfoError
    ? cause
    : new SwarmError('E_STORAGE', 'open', 'the storage cannot be used', { cause })
