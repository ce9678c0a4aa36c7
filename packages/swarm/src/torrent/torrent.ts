// One file because it is the public handle of a torrent and the one place where its parts are wired: most methods pass a
// call on to the part that holds the state (peers, metadata, transfer, choking, discoveries).

import { EventEmitter, on } from 'node:events'
import { type PeerAddress, tryParseAddress } from '@svc/internal-net'
import type { TorrentInfo } from '@svc/metainfo'
import {
  filesWithLayers,
  type LayoutFile,
  MetainfoError,
  type PieceLayers,
  parseInfo,
  TorrentLayout,
  toHex,
  truncateInfohash,
  verifyPieceLayer
} from '@svc/metainfo'
import type { Discovery, DiscoverySink } from '../discovery/discovery.ts'
import { PeerExchange } from '../discovery/pex.ts'
import type { Priority } from '../download/picker.ts'
import { Webseed } from '../download/webseed.ts'
import { SwarmError } from '../errors.ts'
import type { HttpPools } from '../net/http.ts'
import type { Transport } from '../net/transport.ts'
import { type Peer, type PeerOwner, protocolError } from '../peer/peer.ts'
import type { PendingRequest } from '../peer/requests.ts'
import type { TorrentStorage } from '../storage.ts'
import { TokenBucket } from '../upload/token-bucket.ts'
import {
  type ExtensionName,
  formatMetadataData,
  formatMetadataReject,
  METADATA_PIECE_BYTES,
  parseMetadataMessage
} from '../wire/extensions.ts'
import type { Handshake } from '../wire/handshake.ts'
import { type BlockRef, formatHashRange, type HashRange, MESSAGE } from '../wire/messages.ts'
import { Choking } from './choking.ts'
import { MetadataFetch } from './metadata-fetch.ts'
import { type ConnectionLimits, PeerSet, peerLabel } from './peer-set.ts'
import { type EngineParts, Transfer } from './transfer.ts'

export type TorrentState = 'metadata' | 'checking' | 'fetching' | 'seeding' | 'failed' | 'closed'

export interface TorrentOptions {
  /** Exactly one of `info`, `infohash`, `magnet` is needed. The info dictionary's bytes, or a parsed one. */
  readonly info?: Uint8Array | TorrentInfo
  /** 32 bytes: the metadata is fetched from peers and must hash to it. */
  readonly infohash?: Uint8Array
  /** Its trackers, webseeds and peers are used besides those given here. */
  readonly magnet?: string
  /** By pieces root in hex; each is proven before use, what is missing is fetched from peers. */
  readonly pieceLayers?: PieceLayers
  readonly storage: TorrentStorage
  readonly trackers?: readonly string[]
  readonly webseeds?: readonly string[]
  /** `host:port`; private addresses are fine here, the user gave them. */
  readonly peers?: readonly (string | PeerAddress)[]
  /** True: nothing is ever requested; what the storage lacks is not offered. */
  readonly seedOnly?: boolean
  /** False: no bytes are uploaded. Default true. */
  readonly upload?: boolean
  /** False: peers get neither metadata nor hashes, which tell names and sizes of the files. Default true. */
  readonly disclose?: boolean
  /** False: no addresses are exchanged with peers. Default: as the engine. */
  readonly pex?: boolean
  /** Bytes per second; 0: unlimited. */
  readonly uploadLimit?: number
  /** False: not announced to the DHT. Default: as the engine. */
  readonly dht?: boolean
}

export interface TorrentWarning {
  readonly kind: 'peer' | 'webseed' | 'discovery' | 'storage' | 'layers'
  /** Who: address, URL or path. */
  readonly source: string
  readonly message: string
  /** Its bytes were proven wrong: it is no source any more. */
  readonly lied?: true
}

export interface TorrentEvents {
  metadata: [TorrentInfo]
  piece: [piece: number]
  file: [LayoutFile]
  complete: []
  warning: [TorrentWarning]
  failed: [Error]
  closed: []
}

export interface TorrentProgress {
  readonly state: TorrentState
  readonly totalBytes: number | undefined
  readonly verifiedBytes: number
  readonly downloadedBytes: number
  readonly uploadedBytes: number
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
  readonly peers: number
  readonly seeds: number
  readonly webseeds: number
  readonly knownAddresses: number
}

/** What a torrent gets from its engine. */
export interface TorrentEnvironment {
  readonly parts: EngineParts
  readonly limits: ConnectionLimits
  readonly pools: HttpPools
  readonly peerId: Uint8Array
  readonly clientName: string
  readonly listenPort: number | undefined
  readonly globalBucket: TokenBucket
  readonly uploadSlots: number
  readonly pex: boolean
  readonly discover: (torrent: Torrent, sink: DiscoverySink) => Promise<readonly Discovery[]>
  readonly removed: (torrent: Torrent) => void
}

const STALL_MS = 60_000
const SILENCE_MS = 150_000
/** What a peer may leave unread: its blocks in flight, and as much of answers to other messages. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024

/** One torrent of an engine. Made by `Swarm.add`. */
export class Torrent extends EventEmitter<TorrentEvents> implements PeerOwner {
  readonly infohash: Uint8Array
  readonly trackers: readonly string[]
  readonly #env: TorrentEnvironment
  readonly #options: TorrentOptions
  readonly #peers: PeerSet
  readonly #pex: PeerExchange
  readonly #metadata: MetadataFetch
  readonly #choking: Choking
  readonly #bucket: TokenBucket
  readonly #webseeds = new Map<number, Webseed>()
  readonly #webseedUrls: readonly string[]
  #discoveries: readonly Discovery[] = []
  #info: TorrentInfo | undefined
  #layout: TorrentLayout | undefined
  #transfer: Transfer | undefined
  #state: TorrentState = 'metadata'
  #error: Error | undefined
  #closing: Promise<void> | undefined

  /** @internal */
  constructor(
    env: TorrentEnvironment,
    options: TorrentOptions,
    identity: {
      readonly infohash: Uint8Array
      readonly info: TorrentInfo | undefined
      readonly trackers: readonly string[]
      readonly webseeds: readonly string[]
      readonly peers: readonly (string | PeerAddress)[]
    }
  ) {
    super()
    this.#env = env
    this.#options = options
    this.infohash = identity.infohash
    this.trackers = identity.trackers
    this.#webseedUrls = identity.webseeds
    this.#bucket = new TokenBucket(options.uploadLimit ?? 0, performance.now())
    this.#peers = new PeerSet({
      owner: this,
      handshake: () => this.handshake(),
      joined: (peer) => this.#joined(peer),
      limits: env.limits
    })
    this.#pex = new PeerExchange((address, allowPrivate) => this.#peers.add(address, 'pex', allowPrivate))
    this.#metadata = new MetadataFetch(
      this.infohash,
      (bytes) => this.#gotMetadata(bytes),
      (peer) => this.#guilty(peer.id, 'wrong metadata', undefined)
    )
    this.#choking = new Choking(env.uploadSlots, (peer, choke, now) => this.#transfer?.choke(peer, choke, now))
    this.#givenPeers = identity.peers
    if (identity.info !== undefined) this.#setInfo(identity.info)
  }

  readonly #givenPeers: readonly (string | PeerAddress)[]

  /** @internal Called once, after the engine knows the torrent. */
  start(): void {
    if (this.#options.seedOnly !== true) this.#env.parts.verifier.warm()
    if (this.#info !== undefined) void this.#begin()
    for (const peer of this.#givenPeers) this.addPeer(peer)
    void this.#env
      .discover(this, {
        peer: (address, allowPrivate) => this.#peers.add(address, 'tracker', allowPrivate),
        warning: (error) => this.#warn('discovery', 'discovery', error.message),
        stats: () => {
          const progress = this.progress()
          const left = progress.totalBytes === undefined ? 1 : progress.totalBytes - progress.verifiedBytes
          return { uploaded: progress.uploadedBytes, downloaded: progress.downloadedBytes, left }
        }
      })
      .then(
        (discoveries) => {
          this.#discoveries = discoveries
          if (this.#closing !== undefined) void Promise.all(discoveries.map((discovery) => discovery.close()))
        },
        (error: Error) => this.#warn('discovery', 'discovery', error.message)
      )
  }

  get state(): TorrentState {
    return this.#state
  }

  get info(): TorrentInfo | undefined {
    return this.#info
  }

  get layout(): TorrentLayout | undefined {
    return this.#layout
  }

  /** Why the torrent failed. */
  get error(): Error | undefined {
    return this.#error
  }

  get options(): TorrentOptions {
    return this.#options
  }

  progress(): TorrentProgress {
    let downloadRate = 0
    let uploadRate = 0
    let seeds = 0
    for (const peer of this.#peers.values()) {
      downloadRate += peer.down.bytesPerSecond
      uploadRate += peer.up.bytesPerSecond
      if (peer.isSeed) seeds += 1
    }
    let webseeds = 0
    for (const webseed of this.#webseeds.values()) {
      downloadRate += webseed.down.bytesPerSecond
      if (webseed.active) webseeds += 1
    }
    return {
      state: this.#state,
      totalBytes: this.#layout?.totalBytes,
      verifiedBytes: this.#transfer?.progress.verifiedBytes ?? 0,
      downloadedBytes: this.#transfer?.downloadedBytes ?? 0,
      uploadedBytes: this.#transfer?.uploadedBytes ?? 0,
      downloadRate,
      uploadRate,
      peers: this.#peers.size,
      seeds,
      webseeds,
      knownAddresses: this.#peers.book.size
    }
  }

  /** A snapshot of the connections. */
  peers(): readonly {
    readonly address: string
    readonly client: string | undefined
    readonly incoming: boolean
    readonly seed: boolean
    readonly encrypted: boolean
    readonly downloadRate: number
    readonly uploadRate: number
  }[] {
    return [...this.#peers.values()].map((peer) => ({
      address: peer.label,
      client: peer.extended?.client,
      incoming: peer.incoming,
      seed: peer.isSeed,
      encrypted: peer.transport.encrypted,
      downloadRate: peer.down.bytesPerSecond,
      uploadRate: peer.up.bytesPerSecond
    }))
  }

  /** Dials an address that the user gave. @throws SwarmError `E_ADDRESS`. */
  addPeer(peer: string | PeerAddress): void {
    const address = typeof peer === 'string' ? tryParseAddress(peer) : peer
    if (address === undefined) {
      throw new SwarmError('E_ADDRESS', 'peer', `a peer is "host:port", not ${JSON.stringify(peer)}`)
    }
    this.#peers.add(address, 'user', true)
  }

  /** Priority of a file, by index: 0 is not fetched, 3 first. Known files only. */
  priority(fileIndex: number, priority: Priority): void {
    const file = this.#layout?.files[fileIndex]
    if (file === undefined || this.#transfer === undefined) {
      throw new SwarmError('E_OPTION', 'file', `there is no file ${fileIndex}, or the metadata is not known`)
    }
    this.#transfer.setPriority(file, priority)
  }

  /** True when the piece is verified and in the storage. */
  has(piece: number): boolean {
    return this.#transfer?.have.has(piece) === true
  }

  /** Resolves when every file is in the storage; rejects when the torrent fails or is removed before. */
  async completed(signal?: AbortSignal): Promise<void> {
    await this.#until(() => this.#state === 'seeding', ['complete'], signal)
  }

  /** Resolves with the info dictionary. */
  async metadata(signal?: AbortSignal): Promise<TorrentInfo> {
    await this.#until(() => this.#info !== undefined, ['metadata'], signal)
    return this.#info!
  }

  #until(test: () => boolean, events: readonly (keyof TorrentEvents)[], signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (test()) end(resolve)
        else if (this.#error !== undefined) end(() => reject(this.#error!))
        else if (this.#state === 'closed')
          end(() => reject(new SwarmError('E_CLOSED', 'closed', 'the torrent was removed')))
        else if (signal?.aborted === true) end(() => reject(signal.reason as Error))
      }
      const names = [...events, 'failed', 'closed'] as const
      const end = (settle: () => void): void => {
        for (const name of names) this.off(name, check)
        signal?.removeEventListener('abort', check)
        settle()
      }
      for (const name of names) this.on(name, check)
      signal?.addEventListener('abort', check)
      check()
    })
  }

  /** Warnings as they come, until the torrent closes or the signal aborts. */
  async *warnings(signal?: AbortSignal): AsyncGenerator<TorrentWarning> {
    for await (const [warning] of on(this, 'warning', {
      ...(signal === undefined ? {} : { signal }),
      close: ['closed']
    }))
      yield warning as TorrentWarning
  }

  /** Leaves the swarm and closes the storage. Idempotent. */
  remove(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#env.removed(this)
    for (const webseed of this.#webseeds.values()) webseed.close()
    this.#transfer?.close()
    this.#peers.close()
    await Promise.all(this.#discoveries.map((discovery) => discovery.close()))
    // Threads write through the storage's descriptors: it closes when they are done.
    while (this.#transfer?.downloader.idle === false) await new Promise((resolve) => setTimeout(resolve, 5))
    await this.#options.storage.close()
    this.#state = 'closed'
    this.emit('closed')
    this.removeAllListeners()
  }

  // Metadata

  handshake(): Handshake {
    return {
      infohash: truncateInfohash(this.infohash),
      peerId: this.#env.peerId,
      extended: true,
      fast: true,
      dht: false,
      v2: true
    }
  }

  #gotMetadata(bytes: Uint8Array): void {
    try {
      this.#setInfo(parseInfo(bytes))
    } catch (error) {
      // The bytes are what the infohash names: no other peer has better ones.
      return this.#fail(error as Error)
    }
    for (const peer of [...this.#peers.values()]) {
      try {
        peer.setPieceCount(this.#layout!.pieceCount)
        if (peer.handshake.extended) peer.sendExtendedHandshake()
      } catch (error) {
        peer.close(error as Error)
      }
    }
    this.emit('metadata', this.#info!)
    void this.#begin()
  }

  #setInfo(info: TorrentInfo): void {
    this.#layout = new TorrentLayout(info)
    this.#info = info
    this.#state = 'checking'
    this.#transfer = new Transfer({
      id: this.#env.limits.nextPeerId(),
      layout: this.#layout,
      storage: this.#options.storage,
      parts: this.#env.parts,
      fetch: this.#options.seedOnly !== true,
      hooks: {
        peers: () => this.#ready.values(),
        buckets: (peer) => this.#bucketsOf(peer),
        guilty: (sender, reason, piece) => this.#guilty(sender, reason, piece),
        piece: (piece) => this.emit('piece', piece),
        file: (file) => this.emit('file', file),
        complete: () => this.#complete(),
        lost: (file, error) => this.#warn('storage', file.path, error.message),
        failed: (error) => this.#fail(error),
        work: () => {
          for (const webseed of this.#webseeds.values()) webseed.pump()
        }
      }
    })
  }

  async #begin(): Promise<void> {
    const transfer = this.#transfer!
    try {
      await transfer.open(this.#provenLayers())
      if (this.#over) return
      this.#told = true
      for (const peer of [...this.#peers.values()]) this.#readyPeer(peer)
      await transfer.takeStock()
      if (this.#over) return
      if (this.#state === 'checking') this.#state = this.#options.seedOnly === true ? 'seeding' : 'fetching'
      if (this.#options.seedOnly !== true && !transfer.complete) this.#startWebseeds()
      transfer.moreWork()
    } catch (error) {
      this.#fail(
        error instanceof SwarmError || error instanceof MetainfoError
          ? error
          : new SwarmError('E_STORAGE', 'open', 'the storage cannot be used', { cause: error })
      )
    }
  }

  get #over(): boolean {
    return this.#closing !== undefined || this.#error !== undefined
  }

  /** What we have is known, and told to everybody who joins. */
  #told = false

  #provenLayers(): ReadonlyMap<string, Uint8Array> {
    const proven = new Map<string, Uint8Array>()
    const given = this.#options.pieceLayers
    if (given === undefined) return proven
    for (const [root, file] of filesWithLayers(this.#info!)) {
      const layer = given.get(root)
      if (layer === undefined) continue
      if (verifyPieceLayer(layer, file.piecesRoot!, file.length, this.#info!.pieceLength)) proven.set(root, layer)
      else this.#warn('layers', file.path, 'the piece layer given does not fold to its root')
    }
    return proven
  }

  #startWebseeds(): void {
    const userOrigins = new Set(this.#webseedUrls.flatMap((url) => (URL.canParse(url) ? [new URL(url).origin] : [])))
    for (const url of this.#webseedUrls) {
      try {
        const webseed = new Webseed({
          id: this.#env.limits.nextPeerId(),
          url,
          layout: this.#layout!,
          downloader: this.#transfer!.downloader,
          pools: this.#env.pools,
          userOrigins,
          maxRangeBytes: 16 * 1024 * 1024,
          received: (bytes) => {
            this.#transfer!.downloadedBytes += bytes
          },
          warn: (reason, file) => this.#warn('webseed', url, file === undefined ? reason : `${file.path}: ${reason}`)
        })
        this.#webseeds.set(webseed.id, webseed)
      } catch (error) {
        this.#warn('webseed', url, (error as Error).message)
      }
    }
  }

  #complete(): void {
    if (this.#state === 'seeding') return
    this.#state = 'seeding'
    for (const webseed of this.#webseeds.values()) webseed.close()
    this.#webseeds.clear()
    for (const discovery of this.#discoveries) discovery.completed()
    for (const peer of [...this.#ready.values()]) this.#closeIfPointless(peer)
    this.emit('complete')
  }

  #fail(error: Error): void {
    if (this.#error !== undefined || this.#closing !== undefined) return
    this.#error = error
    this.#state = 'failed'
    for (const webseed of this.#webseeds.values()) webseed.close()
    this.#transfer?.close()
    this.#peers.close()
    this.emit('failed', error)
  }

  #warn(kind: TorrentWarning['kind'], source: string, message: string, lied = false): void {
    if (this.#closing === undefined) this.emit('warning', { kind, source, message, ...(lied && { lied }) })
  }

  // Peers

  /** Those who were told what we have: after taking stock. */
  readonly #ready = new Map<number, Peer>()

  /** @internal A connection of the listener. */
  accept(handshake: Handshake, transport: Transport, rest: Uint8Array): void {
    this.#peers.accept(handshake, transport, rest)
  }

  #joined(peer: Peer): void {
    if (this.#told) this.#readyPeer(peer)
    // Without metadata there is nothing to tell but that we look for it; while the storage is asked peers wait.
    else if (this.#state === 'metadata') peer.open(undefined)
  }

  #readyPeer(peer: Peer): void {
    const transfer = this.#transfer!
    if (peer.greeted) this.#announceAll(peer)
    else peer.open(transfer.have)
    this.#ready.set(peer.id, peer)
    transfer.peerJoined(peer)
    if (peer.peerInterested) this.peerInterest(peer)
    this.#closeIfPointless(peer)
  }

  #announceAll(peer: Peer): void {
    const have = this.#transfer!.have
    for (let piece = 0; piece < have.size; piece += 1) if (have.has(piece)) peer.sendHave(piece)
  }

  #closeIfPointless(peer: Peer): void {
    if (this.#transfer?.complete === true && peer.isSeed && peer.extended !== undefined) peer.close()
  }

  #bucketsOf(peer: Peer): readonly TokenBucket[] {
    return peer.closed ? [] : [this.#env.globalBucket, this.#bucket]
  }

  #guilty(sender: number, reason: string, piece: number | undefined): void {
    const webseed = this.#webseeds.get(sender)
    if (webseed !== undefined) {
      const file = this.#layout!.fileOf(piece!)
      webseed.banFile(file)
      this.#warn('webseed', webseed.url, `${file.path}: ${reason}`, true)
      return
    }
    const peer = this.#peers.get(sender)
    if (peer === undefined) return
    this.#warn('peer', peerLabel(peer), reason, true)
    this.#peers.ban(peer, new SwarmError('E_PROTOCOL', 'liar', reason))
  }

  // PeerOwner

  get pieceCount(): number | undefined {
    return this.#layout?.pieceCount
  }

  get infoBytes(): Uint8Array | undefined {
    return this.#info?.infoBytes
  }

  get listenPort(): number | undefined {
    return this.#env.listenPort
  }

  get uploadOnly(): boolean {
    return this.#transfer?.complete === true || this.#options.seedOnly === true
  }

  get pexEnabled(): boolean {
    return this.#env.pex && this.#options.pex !== false && this.#info?.private !== true
  }

  get clientName(): string {
    return this.#env.clientName
  }

  peerExtended(peer: Peer): void {
    if (this.#info === undefined) this.#metadata.offer(peer)
    if (this.pexEnabled) this.#pex.joined(peer, this.#peers.values(), performance.now())
    this.#closeIfPointless(peer)
  }

  peerHas(peer: Peer, piece: number | undefined): void {
    if (!this.#ready.has(peer.id)) return
    this.#transfer!.peerHas(peer, piece)
    this.#closeIfPointless(peer)
  }

  peerInterest(peer: Peer): void {
    if (this.#options.upload === false || !this.#ready.has(peer.id)) return
    this.#choking.interest(peer, [...this.#ready.values()], this.#state === 'fetching', performance.now())
  }

  peerChoke(peer: Peer): void {
    if (this.#ready.has(peer.id)) this.#transfer!.peerChoke(peer)
  }

  peerBlock(peer: Peer, request: PendingRequest): void {
    this.#transfer!.peerBlock(peer, request)
  }

  peerRejected(peer: Peer, request: PendingRequest): void {
    this.#transfer!.peerRejected(peer, request)
  }

  peerRequest(peer: Peer, block: BlockRef): void {
    if (!this.#ready.has(peer.id)) throw protocolError('request', 'a request before it was told of any piece')
    this.#transfer!.peerRequest(peer, block)
  }

  peerCancel(peer: Peer, block: BlockRef): void {
    this.#transfer?.peerCancel(peer, block)
  }

  peerMessage(peer: Peer, extension: ExtensionName, payload: Uint8Array): void {
    if (extension === 'ut_pex') {
      if (this.pexEnabled) this.#pex.message(peer, payload, performance.now())
      return
    }
    const message = parseMetadataMessage(payload)
    if (message === undefined) return
    if (message.kind !== 'request') return this.#metadata.message(peer, message)
    const info = this.#options.disclose === false ? undefined : this.#info?.infoBytes
    const flooded = peer.transport.bufferedBytes > 1_048_576
    if (info === undefined || flooded || message.piece * METADATA_PIECE_BYTES >= info.length) {
      peer.sendExtension('ut_metadata', formatMetadataReject(message.piece))
      return
    }
    const answer = formatMetadataData(message.piece, info)
    for (const bucket of this.#bucketsOf(peer)) bucket.spend(answer.length)
    peer.sendExtension('ut_metadata', answer)
  }

  peerHashRequest(peer: Peer, range: HashRange): void {
    if (this.#transfer === undefined) throw protocolError('hashes', 'a hash request before there is metadata')
    if (this.#options.disclose === false) peer.send(formatHashRange(MESSAGE.hashReject, range))
    else this.#transfer.peerHashRequest(peer, range)
  }

  peerHashes(peer: Peer, range: HashRange, hashes: Uint8Array | undefined): void {
    this.#transfer!.hashFetch.answer(peer, range, hashes)
    this.#transfer!.hashFetch.pump(this.#ready.values())
  }

  peerClosed(peer: Peer, error: Error | undefined): void {
    if (this.#ready.delete(peer.id)) this.#transfer!.peerGone(peer)
    this.#metadata.gone(peer)
    this.#pex.gone(peer)
    const broken = error instanceof SwarmError || error instanceof MetainfoError
    if (broken && error.reason !== 'liar' && error.code !== 'E_CLOSED') {
      this.#warn('peer', peerLabel(peer), error.message)
    }
    this.#peers.gone(peer)
    if (!this.#choking.slotsFree([...this.#ready.values()])) return
    this.#choking.run([...this.#ready.values()], this.#state === 'fetching', performance.now())
  }

  // Time

  /** @internal About once a second. */
  tick(nowMs: number): void {
    if (this.#state === 'closed' || this.#state === 'failed') return
    for (const peer of [...this.#peers.values()]) {
      peer.tick(nowMs)
      if (nowMs - peer.lastReceivedAt > SILENCE_MS) peer.close(protocolError('silence', 'nothing for a long time'))
      else if (peer.transport.bufferedBytes > MAX_UNREAD_BYTES)
        peer.close(protocolError('stalled', 'and does not read'))
      else if (this.#transfer?.uploadStalled(peer, nowMs - STALL_MS) === true)
        peer.close(protocolError('stalled', 'requests and does not read the answers'))
    }
    for (const webseed of this.#webseeds.values()) {
      webseed.down.tick(nowMs)
      webseed.pump()
    }
    if (this.#info === undefined) this.#metadata.tick(this.#peers.values(), nowMs)
    else this.#transfer!.tick(nowMs)
    if (this.pexEnabled) this.#pex.tick(this.#peers.values(), nowMs)
    if (this.#options.upload !== false) this.#choking.tick([...this.#ready.values()], this.#state === 'fetching', nowMs)
    this.#peers.pump()
  }

  checkInvariants(): void {
    this.#transfer?.checkInvariants()
    this.#peers.checkInvariants()
    this.#metadata.checkInvariants()
    for (const peer of this.#ready.values()) if (peer.closed) throw new Error('a closed peer is in use')
  }
}

/** The key that torrents are known by on the wire: the truncated infohash. */
export const wireKey = (infohash: Uint8Array): string => toHex(truncateInfohash(infohash))
