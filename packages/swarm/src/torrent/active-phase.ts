// A torrent whose metadata is known. In order:
//
//   1. `open` opens the storage and asks it for the state of each file. Peers that connect in the meantime wait.
//   2. Then every peer is told what we have (`admit`), and from then on of each new piece (`piece-verified`).
//   3. `takeStock`: existing bytes of incomplete files are hashed; the rest is opened for fetching. If piece hashes are
//      unknown, they are fetched first (`layer`).
//   4. With the last file (`file-done`) the torrent is complete: Leeching is closed and released, Seeding stays.
//
// One file because all of its events meet here. Verified pieces belong to `FileProgress`, piece hashes to `PieceHashes`,
// downloading to `Leeching`, uploading to `Seeding`, and connections to the torrent.

import type { ByteRanges } from '@svc/internal-byte-ranges'
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
import type { Emit, PeerEvent } from '../events.ts'
import { guarded } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { parseMetadataMessage } from '../wire/extensions.ts'
import type { TorrentParts } from './environment.ts'
import { checkFile } from './file-check.ts'
import { Leeching } from './leeching.ts'
import { Seeding } from './seeding.ts'
import type { TorrentIdentity } from './torrent-identity.ts'
import type { FileRange, TorrentProgress } from './torrent-status.ts'

type ActivePhaseEvents = 'piece-verified' | 'file-done' | 'complete' | 'bad-data' | 'warning' | 'failed'

/**
 * Invariants: a peer is in `#told` exactly from `admit` to its `closed`; unless the torrent is `seedOnly`, there is a
 * Leeching until it is complete.
 */
export class ActivePhase {
  readonly info: TorrentInfo
  readonly layout: TorrentLayout
  readonly #parts: TorrentParts
  readonly #sources: Pick<TorrentIdentity, 'webseeds' | 'strangers'>
  readonly #emit: Emit<ActivePhaseEvents>
  readonly #seeding: Seeding
  #leeching: Leeching | undefined
  /** The peers that were told what we have. */
  readonly #told = new Map<number, Peer>()
  /** Unverified ranges, by file; those that stock-taking could not check wait for piece hashes. */
  readonly #partial = new Map<number, ByteRanges>()
  /** Resolves when the storage has reported its files: hash requests wait for it. */
  readonly #opened = Promise.withResolvers<void>()
  #isOpen = false
  #stockTaken = false
  /** Every file was complete once; a file that is lost afterwards is not fetched again. */
  #finished = false
  #downloadedBytes = 0
  #uploadedBytes = 0
  /** Changes of interest in this turn of the event loop. */
  #interests = 0
  #closed = false
  /** Threads may still be writing after Leeching was released. */
  #written: Promise<void> = Promise.resolve()

  constructor(
    known: Pick<TorrentParts, 'env' | 'options' | 'info'>,
    sources: Pick<TorrentIdentity, 'webseeds' | 'strangers'>,
    emit: Emit<ActivePhaseEvents>
  ) {
    const layout = new TorrentLayout(known.info)
    const take: TorrentParts['emit'] = (event) => this.#takePiece(event)
    this.info = known.info
    this.layout = layout
    this.#sources = sources
    this.#emit = emit
    this.#parts = {
      ...known,
      id: known.env.nextId(),
      layout,
      hashes: new PieceHashes(layout),
      progress: new FileProgress(layout, known.options.storage, take),
      peers: this.#told,
      emit: take
    }
    this.#seeding = new Seeding(this.#parts)
    if (known.options.seedOnly !== true) this.#leeching = new Leeching(this.#parts)
  }

  // the torrent's state for its user

  get state(): 'checking' | 'fetching' | 'seeding' {
    if (this.#finished || (this.#stockTaken && this.#parts.options.seedOnly === true)) return 'seeding'
    return this.#stockTaken ? 'fetching' : 'checking'
  }

  /** Undefined until the storage has reported its files: peers are not greeted before. */
  get have(): Bitfield | undefined {
    return this.#isOpen ? this.#parts.progress.have : undefined
  }

  get complete(): boolean {
    return this.#isOpen && this.#parts.progress.filesLeft === 0
  }

  /** Progress without the part that peers report; the rate is that of the webseeds. */
  get progress(): Omit<TorrentProgress, 'state' | 'uploadRate' | 'peers'> {
    const { downloadRate, active } = this.#leeching?.webseeds.status ?? { downloadRate: 0, active: 0 }
    return {
      totalBytes: this.layout.totalBytes,
      verifiedBytes: this.#parts.progress.verifiedBytes,
      unverifiedBytes: this.#leeching?.unverifiedBytes ?? 0,
      downloadedBytes: this.#leeching?.downloadedBytes ?? this.#downloadedBytes,
      uploadedBytes: this.#uploadedBytes,
      downloadRate,
      webseeds: active
    }
  }

  has(piece: number): boolean {
    return this.#parts.progress.have.has(piece)
  }

  setPriority(file: LayoutFile, priority: Priority): void {
    this.#leeching?.setPriority(file, priority)
  }

  hasten(ranges: readonly FileRange[]): void {
    const { pieceLengthBytes: each, files } = this.layout
    const pieces = ranges.flatMap(({ fileIndex, start, end }) => {
      const file = files[fileIndex]
      if (file === undefined || start >= Math.min(end, file.lengthBytes)) return []
      const endPiece = file.firstPiece + Math.ceil(Math.min(end, file.lengthBytes) / each)
      return [{ firstPiece: file.firstPiece + Math.floor(start / each), endPiece }]
    })
    this.#leeching?.hasten(pieces)
  }

  // beginning

  /** Asks the storage for the state of its files; peers can be greeted afterwards. @throws the storage's error. */
  async open(): Promise<void> {
    const { storage } = this.#parts.options
    await storage.open(this.layout)
    for (const file of this.layout.files) {
      const state = await storage.state(file)
      if (this.#closed) return
      if (state.kind === 'complete') this.#parts.progress.trust(file)
      else this.#partial.set(file.index, state.ranges)
    }
    this.#useGivenLayers()
    this.#isOpen = true
    this.#opened.resolve()
  }

  #useGivenLayers(): void {
    const given = this.#parts.options.pieceLayers
    if (given === undefined) return
    for (const [root, file] of filesWithLayers(this.info)) {
      const layer = given.get(root)
      if (layer === undefined) continue
      if (verifyPieceLayer(layer, file.piecesRoot!, file.length, this.info.pieceLength))
        this.#parts.hashes.set(root, layer)
      else this.#warn('layers', file.path, 'the piece layer given does not fold to its root')
    }
  }

  /** Verifies existing bytes of incomplete files, and opens the rest for fetching. @throws the storage's error. */
  async takeStock(): Promise<void> {
    for (const file of this.layout.files) {
      if (this.#parts.progress.isDone(file)) continue
      if (this.#parts.hashes.known(file)) await this.#admitFile(file)
      else this.#leeching?.wantHashes(file)
      if (this.#closed) return
    }
    this.#stockTaken = true
    if (this.complete) return this.#finish()
    this.#leeching?.webseeds.start(this.#sources.webseeds, this.#sources.strangers)
    this.#leeching?.moreWork()
  }

  /** The file's pieces can be verified now: checks existing bytes, and allows fetching the rest. */
  async #admitFile(file: LayoutFile): Promise<void> {
    if (file.pieceCount === 0) return this.#parts.progress.finish(file)
    const ranges = this.#partial.get(file.index) ?? []
    this.#partial.delete(file.index)
    if (ranges.length > 0) {
      const right = (piece: number): void => this.#pieceVerified(piece)
      await checkFile(this.#parts, file, ranges, { right, closed: () => this.#closed })
    }
    if (!this.#closed) this.#leeching?.open(file)
  }

  #warn(kind: 'layers' | 'storage', source: string, message: string): void {
    this.#emit({ kind: 'warning', warning: { kind, source, message } })
  }

  // peers

  /** The pieces that the peer is greeted with: none if it hears of them one by one (BEP 16). */
  readonly shownTo = (peer: Peer): Bitfield | undefined => (this.#seeding.hidesFrom(peer) ? undefined : this.have)

  /** The peer has been told what we have. */
  admit(peer: Peer): void {
    this.#told.set(peer.id, peer)
    this.#seeding.admit(peer)
    this.#leeching?.joined(peer)
    if (peer.peerInterested) this.#seeding.interestChanged(this.state === 'fetching')
    this.#closeIfPointless(peer)
  }

  /** Handles an event of a peer. @throws SwarmError `E_PROTOCOL` for a violation of the protocol. */
  take(event: PeerEvent): void {
    const { peer } = event
    switch (event.kind) {
      case 'extended':
        this.#leeching?.stands(peer)
        return this.#closeIfPointless(peer)
      case 'pieces':
        if (!this.#told.has(peer.id)) return
        this.#leeching?.pieces(peer, event.piece)
        this.#seeding.pieces(peer, event.piece)
        return this.#closeIfPointless(peer)
      case 'interest':
        if (this.#told.has(peer.id)) this.#interestChanged()
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
        return this.#seeding.gone(peer, this.state === 'fetching')
    }
  }

  /** The first change of a turn counts at once, later ones together: one read may bring thousands of them. */
  #interestChanged(): void {
    if (this.#interests++ > 0) return
    this.#seeding.interestChanged(this.state === 'fetching')
    setImmediate(
      guarded(() => {
        const more = this.#interests > 1
        this.#interests = 0
        if (more && !this.#closed) this.#seeding.interestChanged(this.state === 'fetching')
      })
    )
  }

  /** Closes connections between two seeds, which have nothing to exchange. */
  #closeIfPointless(peer: Peer): void {
    if (this.complete && peer.pieces.isSeed && peer.extended !== undefined) peer.close()
  }

  // pieces and files

  #takePiece(event: Parameters<TorrentParts['emit']>[0]): void {
    switch (event.kind) {
      case 'piece-verified':
        return this.#pieceVerified(event.piece)
      case 'layer':
        return this.#layerKnown(event.rootHex, event.layer)
      case 'file-done':
        this.#emit(event)
        // during stock-taking its end decides instead.
        if (this.complete && this.#stockTaken) this.#finish()
        return
      case 'file-refused':
        this.#seeding.dropFile(event.file.index)
        return this.#leeching?.open(event.file)
      case 'file-lost':
        return this.#fileLost(event.fileIndex, event.error)
      case 'sent':
        this.#uploadedBytes += event.bytes
        return
      case 'bad-data':
      case 'warning':
      case 'failed':
        if (!this.#closed) this.#emit(event)
        return
      default: // handled by Leeching
    }
  }

  #pieceVerified(piece: number): void {
    if (!this.#parts.progress.piece(piece)) return
    // a super-seed goes by what we announce (BEP 16), though it has the piece
    for (const peer of this.#told.values()) if (!peer.pieces.hasAll) peer.sendHave(piece)
    this.#emit({ kind: 'piece-verified', piece })
  }

  #layerKnown(rootHex: string, layer: Uint8Array): void {
    this.#leeching?.hashFetch.unwant(rootHex)
    for (const file of this.#parts.hashes.set(rootHex, layer)) {
      if (this.#parts.progress.isDone(file)) continue
      this.#admitFile(file).catch((error: unknown) => {
        if (!this.#closed) this.#emit({ kind: 'failed', error: storageError(error) })
      })
    }
  }

  /** Reading failed: the file is no longer offered, and requests for it are rejected. */
  #fileLost(fileIndex: number, error: Error): void {
    const file = this.layout.files[fileIndex]!
    if (!this.#parts.progress.have.has(file.firstPiece)) return
    this.#parts.progress.lose(file)
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
    for (const peer of [...this.#told.values()]) this.#closeIfPointless(peer)
    this.#emit({ kind: 'complete' })
  }

  // time

  tick(nowMs: number): void {
    this.#leeching?.tick(nowMs)
    this.#seeding.tick(this.state === 'fetching', nowMs)
  }

  /** True when the peer requested blocks and its socket has taken nothing since then. */
  uploadStalled(peer: Peer, sinceMs: number): boolean {
    return this.#seeding.stalled(peer, sinceMs)
  }

  /** Resolves when nothing writes to the storage any more. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    this.#opened.resolve()
    this.#parts.progress.close()
    this.#seeding.close()
    await Promise.all([this.#written, this.#leeching?.close()])
  }
}

/** The error that a torrent fails with when its storage throws. */
export const storageError = (cause: unknown): SwarmError | MetainfoError =>
  cause instanceof SwarmError || cause instanceof MetainfoError
    ? cause
    : new SwarmError('E_STORAGE', 'open', 'the storage cannot be used', { cause })
