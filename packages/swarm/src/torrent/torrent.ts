// The life of a torrent:
//
//   added ──► MetadataPhase ──metadata──► ActivePhase ──complete──► (seeding) ──remove──► closed
//     └────────(info given)──────────────────▲   └──────────failed──────────┘
//
// Torrent is the façade: the public handle, and the owner of the connections. It has the set of peers (`PeerSet`), peer
// exchange, the discoveries, and the current phase; the phases own everything about metadata, pieces and files.
//
// Order: a peer's event comes here first; connections (joining, addresses, leaving) are handled here, then the phase
// handles it. A phase's events reach the user's listeners after our own state has changed.

import { EventEmitter } from 'node:events'
import { formatAddress, type PeerAddress } from '@svc/internal-net'
import { MetainfoError, type TorrentInfo, type TorrentLayout, truncateInfohash } from '@svc/metainfo'
import type { Discovery } from '../discovery/discovery.ts'
import { PeerExchange } from '../discovery/pex.ts'
import type { Priority } from '../download/picker.ts'
import { SwarmError } from '../errors.ts'
import type { EventOf, OutcomeEvent, PeerEvent, TorrentWarning } from '../events.ts'
import { guarded } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import type { PeerStatus } from '../peer/peer-status.ts'
import { protocolError } from '../peer/protocol-error.ts'
import type { OurExtendedHandshake } from '../wire/extensions.ts'
import type { Handshake } from '../wire/handshake.ts'
import { ActivePhase, storageError } from './active-phase.ts'
import type { TorrentEnvironment } from './environment.ts'
import { MetadataPhase } from './metadata-phase.ts'
import { PeerSet, peerLabel } from './peer-set.ts'
import { parsePeer, type TorrentIdentity } from './torrent-identity.ts'
import type { TorrentOptions } from './torrent-options.ts'
import type { FileRange, TorrentEvents, TorrentProgress, TorrentState } from './torrent-status.ts'

/** A peer that requested blocks is closed when its socket takes nothing for this long. */
const STALL_MS = 60_000
/** A peer that sends nothing at all for this long is closed; keep-alives come every two minutes. */
const SILENCE_MS = 150_000
/** Limit of unread bytes in a peer's socket: its blocks in flight, and as much again for answers to other messages. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024

const NOTHING_YET: ActivePhase['progress'] = {
  totalBytes: undefined,
  verifiedBytes: 0,
  unverifiedBytes: 0,
  downloadedBytes: 0,
  uploadedBytes: 0,
  downloadRate: 0,
  webseeds: 0
}

/** One torrent of an engine. Made by `Swarm.add`. */
export class Torrent extends EventEmitter<TorrentEvents> {
  /** 32 bytes. */
  readonly infohash: Uint8Array
  readonly trackers: readonly string[]
  /** @internal */
  readonly strangers: ReadonlySet<string>
  /** @internal Our side of every handshake. */
  readonly handshake: Handshake
  /** @internal */
  readonly connections: PeerSet
  readonly #env: TorrentEnvironment
  readonly #options: TorrentOptions
  readonly #identity: TorrentIdentity
  readonly #pex: PeerExchange
  #phase: MetadataPhase | ActivePhase
  #discoveries: readonly Discovery[] = []
  #error: Error | undefined
  #closing: Promise<void> | undefined
  #isClosed = false

  /** @internal */
  constructor(env: TorrentEnvironment, options: TorrentOptions, identity: TorrentIdentity) {
    super()
    this.#env = env
    this.#options = options
    this.#identity = identity
    this.infohash = identity.infohash
    this.trackers = identity.trackers
    this.strangers = identity.strangers
    this.handshake = { infohash: truncateInfohash(identity.infohash), peerId: env.peerId, extended: true, fast: true }
    this.#phase =
      identity.info === undefined
        ? new MetadataPhase(identity.infohash, env, (event) => this.#outcome(event))
        : this.#activePhase(identity.info)
    this.connections = new PeerSet({
      env,
      handshake: this.handshake,
      pieceCount: this.layout?.pieceCount,
      emit: (event) => this.#peerEvent(event)
    })
    this.#pex = new PeerExchange((address, allowPrivate) => this.connections.add(address, 'stranger', allowPrivate))
  }

  #activePhase(info: TorrentInfo): ActivePhase {
    const known = { env: this.#env, options: this.#options, info }
    return new ActivePhase(known, this.#identity, (event) => this.#outcome(event))
  }

  /** @internal Called once, after the engine knows the torrent. */
  start(): void {
    if (this.#options.seedOnly !== true) this.#env.verifier.warm()
    if (this.#phase instanceof ActivePhase) void this.#begin(this.#phase)
    const { peers, strangers } = this.#identity
    for (const address of peers) {
      const isVouched = !strangers.has(formatAddress(address))
      this.connections.add(address, isVouched ? 'user' : 'stranger', isVouched)
    }
    // its user listens to warnings by then.
    queueMicrotask(guarded(() => this.#discover()))
  }

  #discover(): void {
    if (this.#closing !== undefined) return
    this.#discoveries = this.#env.discover(this, {
      peer: (address, allowPrivate) => this.connections.add(address, 'stranger', allowPrivate),
      warning: (error) => this.#warn('discovery', 'discovery', error.message),
      stats: () => {
        const { totalBytes, verifiedBytes, uploadedBytes, downloadedBytes } = this.progress()
        // announces need the number of missing bytes. Without metadata it is unknown, but not 0.
        const left = totalBytes === undefined ? 1 : totalBytes - verifiedBytes
        return { uploaded: uploadedBytes, downloaded: downloadedBytes, left }
      }
    })
  }

  // what the user sees

  get state(): TorrentState {
    if (this.#isClosed) return 'closed'
    return this.#error === undefined ? this.#phase.state : 'failed'
  }

  /** The info dictionary; undefined until it is known. */
  get info(): TorrentInfo | undefined {
    return this.#active?.info
  }

  get layout(): TorrentLayout | undefined {
    return this.#active?.layout
  }

  get #active(): ActivePhase | undefined {
    return this.#phase instanceof ActivePhase ? this.#phase : undefined
  }

  /** Why the torrent failed. */
  get error(): Error | undefined {
    return this.#error
  }

  get options(): TorrentOptions {
    return this.#options
  }

  /** A snapshot of its progress. */
  progress(): TorrentProgress {
    const progress = this.#active?.progress ?? NOTHING_YET
    let { downloadRate } = progress
    let uploadRate = 0
    for (const peer of this.connections.values()) {
      downloadRate += peer.down.bytesPerSecond
      uploadRate += peer.up.bytesPerSecond
    }
    return { ...progress, state: this.state, downloadRate, uploadRate, peers: this.connections.size }
  }

  /** The connections. */
  peers(): readonly PeerStatus[] {
    return [...this.connections.values()].map((peer) => {
      const found = this.connections.book.sourceOf(peer.address) === 'user' ? 'user' : 'discovery'
      return { ...peer.status, source: peer.incoming ? 'incoming' : found }
    })
  }

  /** Dials an address given by the user. @throws SwarmError `E_ADDRESS`. */
  addPeer(peer: string | PeerAddress): void {
    this.connections.add(parsePeer(peer), 'user', true)
  }

  /** 0: the file is not fetched; 3: it comes first. @throws SwarmError `E_OPTION`: no such file, or no metadata yet */
  priority(fileIndex: number, priority: Priority): void {
    const active = this.#active
    const file = active?.layout.files[fileIndex]
    if (active === undefined || file === undefined)
      throw new SwarmError('E_OPTION', 'file', `there is no file ${fileIndex}, or the metadata is not known`)
    active.setPriority(file, priority)
  }

  /**
   * Somebody waits for these bytes: their pieces are requested before all others, except of files with priority 0.
   * Replaces the ranges of the call before; what is in no file does not count. Without metadata it does nothing.
   */
  hasten(ranges: readonly FileRange[]): void {
    this.#active?.hasten(ranges)
  }

  /** True when the piece is verified and stored. */
  has(piece: number): boolean {
    return this.#active?.has(piece) === true
  }

  /** Resolves when every file is complete; rejects when the torrent fails or is removed, or the signal is aborted. */
  completed(signal?: AbortSignal): Promise<void> {
    const done = Promise.withResolvers<void>()
    const check = (): void => {
      if (this.state === 'seeding') done.resolve()
      else if (this.#error !== undefined) done.reject(this.#error)
      else if (this.#isClosed) done.reject(new SwarmError('E_CLOSED', 'closed', 'the torrent was removed'))
      else if (signal?.aborted) done.reject(signal.reason)
    }
    const events = ['complete', 'failed', 'closed'] as const
    for (const event of events) this.on(event, check)
    signal?.addEventListener('abort', check)
    check()
    return done.promise.finally(() => {
      for (const event of events) this.off(event, check)
      signal?.removeEventListener('abort', check)
    })
  }

  /**
   * Leaves the swarm and closes the storage, whatever of it fails. Idempotent. Rejects with what the storage's `close`
   * throws, or else the first other failure; the torrent is removed all the same.
   */
  remove(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#env.removed(this.infohash)
    const written = this.#phase.close()
    this.connections.close()
    // threads write through the storage's descriptors: close it when they are done.
    const ends = await Promise.allSettled([written, ...this.#discoveries.map((discovery) => discovery.close())])
    try {
      await this.#options.storage.close()
    } finally {
      this.#isClosed = true
      this.emit('closed')
      this.removeAllListeners()
    }
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  // phases

  get #isOver(): boolean {
    return this.#closing !== undefined || this.#error !== undefined
  }

  async #begin(phase: ActivePhase): Promise<void> {
    try {
      await phase.open()
      if (this.#isOver) return
      for (const peer of [...this.connections.values()]) this.#admit(phase, peer)
      await phase.takeStock()
    } catch (error) {
      this.#fail(storageError(error))
    }
  }

  #outcome(event: OutcomeEvent | EventOf<'piece-verified' | 'file-done'>): void {
    switch (event.kind) {
      case 'metadata':
        return this.#metadataKnown(event.info)
      case 'piece-verified':
        return void this.emit('piece', event.piece)
      case 'file-done':
        return void this.emit('file', event.file)
      case 'complete':
        for (const discovery of this.#discoveries) discovery.completed?.()
        return void this.emit('complete')
      case 'bad-data':
        return this.#banSender(event)
      case 'warning':
        if (this.#closing === undefined) this.emit('warning', event.warning)
        return
      case 'failed':
        return this.#fail(event.error)
    }
  }

  #metadataKnown(info: TorrentInfo): void {
    const phase = this.#activePhase(info)
    this.#phase = phase
    this.connections.setPieceCount(phase.layout.pieceCount)
    for (const peer of [...this.connections.values()]) peer.sendExtendedHandshake(this.#greeting(peer))
    this.emit('metadata', info)
    void this.#begin(phase)
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#error = error
    void this.#phase.close()
    this.connections.close()
    this.emit('failed', error)
  }

  #banSender({ sender, reason }: EventOf<'bad-data'>): void {
    const label = this.connections.ban(sender, new SwarmError('E_PROTOCOL', 'bad-data', reason))
    if (label !== undefined) this.#warn('peer', label, reason, true)
  }

  #warn(kind: TorrentWarning['kind'], source: string, message: string, lied = false): void {
    if (this.#closing === undefined) this.emit('warning', { kind, source, message, ...(lied && { lied }) })
  }

  // peers

  #greeting(peer: Peer): OurExtendedHandshake {
    const active = this.#active
    const seeds = active?.complete === true || this.#options.seedOnly === true
    return {
      metadataBytes: active?.info.infoBytes.length,
      listenPort: this.#env.listenPort(),
      // a super-seed looks empty to its peers, who would drop it as useless if it said that it only uploads
      uploadOnly: seeds && (active?.have === undefined || active.shownTo(peer) !== undefined),
      pex: this.#pexEnabled,
      ...(peer.trusted && { zone: this.#env.zone })
    }
  }

  get #pexEnabled(): boolean {
    return this.#env.pex && this.#options.pex !== false && this.info?.private !== true
  }

  #peerEvent(event: PeerEvent): void {
    const { peer } = event
    switch (event.kind) {
      case 'joined':
        return this.#greet(peer)
      case 'extended':
        if (!this.connections.stands(peer)) return
        if (this.#pexEnabled) this.#pex.joined(peer, this.connections.values(), this.#env.clock.monotonic())
        break
      case 'extension':
        if (event.extension !== 'ut_pex') break
        if (this.#pexEnabled) this.#pex.message(peer, event.payload, this.#env.clock.monotonic())
        return
      case 'closed':
        this.#left(peer, event.error)
        break
      default:
    }
    this.#phase.take(event)
    if (event.kind === 'closed') this.connections.gone(peer)
  }

  /** Greets a peer. Without metadata we only announce our interest; while the storage is being asked, peers wait. */
  #greet(peer: Peer): void {
    if (this.#phase instanceof MetadataPhase) peer.open(this.#greeting(peer), undefined)
    else if (this.#phase.have !== undefined) this.#admit(this.#phase, peer)
  }

  /** Tells the peer what we have; from then on it takes part. */
  #admit(phase: ActivePhase, peer: Peer): void {
    const have = phase.shownTo(peer)
    if (peer.greeted && have !== undefined) {
      for (let piece = 0; piece < have.size; piece += 1) if (have.has(piece)) peer.sendHave(piece)
    } else if (!peer.greeted) peer.open(this.#greeting(peer), have)
    phase.admit(peer)
  }

  #left(peer: Peer, error: Error | undefined): void {
    this.#pex.gone(peer)
    const broken = error instanceof SwarmError || error instanceof MetainfoError
    if (broken && error.reason !== 'bad-data' && error.code !== 'E_CLOSED')
      this.#warn('peer', peerLabel(peer), error.message)
  }

  // time

  /** @internal About once a second. */
  tick(nowMs: number): void {
    if (this.#isOver) return
    for (const peer of [...this.connections.values()]) this.#tickPeer(peer, nowMs)
    if (this.#phase instanceof MetadataPhase) this.#phase.tick(this.connections.values(), nowMs)
    else this.#phase.tick(nowMs)
    if (this.#pexEnabled) this.#pex.tick(this.connections.values(), nowMs)
    this.connections.pump()
  }

  #tickPeer(peer: Peer, nowMs: number): void {
    peer.tick(nowMs)
    if (nowMs - peer.lastReceivedAt > SILENCE_MS) peer.close(protocolError('silence', 'nothing for a long time'))
    else if (peer.transport.bufferedBytes > MAX_UNREAD_BYTES)
      peer.close(protocolError('stalled', 'requests, and reads too little'))
    else if (this.#active?.uploadStalled(peer, nowMs - STALL_MS) === true)
      peer.close(protocolError('stalled', 'requests, and does not read the answers'))
  }
}
