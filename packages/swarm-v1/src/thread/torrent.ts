import type { Clock } from '@svc/internal-clock'
import { type DhtNode, Trackers } from '@svc/internal-discovery'
import { formatAddress, isPublicAddress, type PeerAddress, tryParseAddress } from '@svc/internal-net'
import { SwarmV1Error } from '../errors.ts'
import { parseV1Torrent, torrentBytes } from '../layout.ts'
import type { FromThread, ToThread, V1Progress, V1ThreadData } from '../messages.ts'
import { Blame } from './blame.ts'
import { Chunks, type PieceCalls } from './chunks.ts'
import type { WebTorrentClient, WebTorrentTorrent, WebTorrentWire } from './client.ts'
import { KnownAddresses } from './known-addresses.ts'

export interface TorrentDeps {
  readonly clock: Clock
  readonly client: WebTorrentClient
  readonly dht: DhtNode | undefined
  readonly policy: V1ThreadData['policy']
  readonly port: number
  readonly pieces: PieceCalls
  readonly tell: (message: FromThread) => void
}

type JoinMessage = Extract<ToThread, { kind: 'join' }>

/** webtorrent's warning for a piece with a wrong hash, the only sign of it. */
const FAILED_PIECE = /^Piece (\d+) failed verification$/
/** Limit of addresses of one torrent that strangers named. */
const MAX_ADDRESSES = 2_000
const SWEEP_MS = 2_000
/** Announced as missing bytes while the size is unknown. */
const UNKNOWN_LEFT = 1

/**
 * One torrent within the thread: webtorrent talks to its peers, our own discovery finds them.
 *
 * In order: metadata (given, or from a peer) → `metadata` to the owner → {@link opened} → existing pieces are checked →
 * pieces are fetched → `done` → served until {@link leave}.
 */
export class ThreadTorrent {
  readonly #deps: TorrentDeps
  readonly #join: JoinMessage
  readonly #torrent: WebTorrentTorrent
  readonly #trackers: Trackers
  readonly #blame = new Blame()
  readonly #known: KnownAddresses
  readonly #dial: WebTorrentTorrent['addPeer']
  readonly #opened = Promise.withResolvers<void>()
  #info: Uint8Array | undefined
  #told = ''
  #sweptMs = 0
  #mayUpload = false

  constructor(join: JoinMessage, deps: TorrentDeps) {
    this.#join = join
    this.#deps = deps
    const { client, pieces } = deps
    const lengthBytes = (): number => this.#torrent.length
    const judged: PieceCalls = {
      read: (piece, offset, length) => pieces.read(piece, offset, length),
      write: (piece, bytes) => {
        this.#drop(this.#blame.verified(piece, bytes))
        return pieces.write(piece, bytes)
      }
    }
    this.#torrent = client.add(join.info ? torrentBytes(join.info, []) : { infoHash: join.infohash, announce: [] }, {
      store: class extends Chunks {
        constructor(pieceLength: number) {
          super(pieceLength, lengthBytes(), judged)
        }
      },
      storeCacheSlots: 0,
      strategy: 'rarest',
      ...(join.quiet && { private: true }),
      ...(join.complete && join.info ? { bitfield: fullBitfield(join.info, join.infohash) } : {})
    })
    const { _peers: held, addPeer } = this.#torrent
    if (typeof held?.has !== 'function' || typeof addPeer !== 'function') throw moved('keeps its peers')
    this.#known = new KnownAddresses(MAX_ADDRESSES, (address) => held.has(address))
    this.#dial = addPeer.bind(this.#torrent)
    this.#boundAddresses()
    this.#checkMetadataFirst()
    this.#askOneAtATime()
    const { id } = join
    this.#torrent.on('error', (error: unknown) => deps.tell({ kind: 'failed', id, message: messageOf(error) }))
    this.#torrent.once('done', () => {
      deps.tell({ kind: 'done', id })
      this.#trackers.completed()
    })
    this.#torrent.on('wire', (wire: WebTorrentWire, address?: string) => this.#watch(wire, address))
    this.#torrent.on('warning', (warning: unknown) => {
      const failed = FAILED_PIECE.exec(messageOf(warning))
      if (failed) this.#drop(this.#blame.failed(Number(failed[1])))
    })
    this.#torrent.once('infoHash', () => {
      for (const peer of join.peers) this.addPeer(peer)
    })
    this.#trackers = this.#startTrackers()
    const isPrivate = join.quiet || (join.info !== undefined && parseV1Torrent(join.info, join.infohash).isPrivate)
    if (!isPrivate) deps.dht?.join(join.infohash, deps.port, (peer, allowed) => this.#found(peer, allowed))
  }

  /** A peer that the user named: dialled, however many strangers named. */
  addPeer(address: string): void {
    if (!this.#torrent.destroyed && !this.#blame.isBanned(address)) this.#dial(address)
  }

  /** The owner has accepted the metadata and opened the storage. With `upload` peers get what is in it. */
  opened(upload: boolean): void {
    this.#mayUpload = upload
    this.#opened.resolve()
  }

  /** Reports the progress if it changed; called periodically. */
  tick(): void {
    const torrent = this.#torrent
    if (torrent.destroyed) return
    const progress: V1Progress = {
      peers: torrent.numPeers,
      downBytesPerSecond: Math.round(torrent.downloadSpeed),
      upBytesPerSecond: Math.round(torrent.uploadSpeed),
      uploadedBytes: torrent.uploaded,
      unverifiedBytes: torrent.done ? 0 : unverifiedBytes(torrent)
    }
    const text = JSON.stringify(progress)
    if (text !== this.#told) this.#deps.tell({ kind: 'progress', id: this.#join.id, progress })
    this.#told = text
    const nowMs = this.#deps.clock.monotonic()
    if (nowMs - this.#sweptMs >= SWEEP_MS) {
      this.#sweptMs = nowMs
      this.#known.sweep(nowMs)
    }
    // peers that were skipped because another one had the turn are tried again.
    if (this.#blame.suspects > 0) torrent._update()
  }

  async leave(): Promise<void> {
    this.#deps.dht?.leave(this.#join.infohash)
    const goodbye = this.#trackers.close()
    if (!this.#torrent.destroyed) await new Promise<void>((resolve) => this.#torrent.destroy(() => resolve()))
    await goodbye
  }

  /**
   * webtorrent's own parser accepts nearly anything, so the metadata is validated first, here and by the owner.
   * Metadata from a peer and from `info` both pass through `_onMetadata`.
   */
  #checkMetadataFirst(): void {
    const torrent = this.#torrent
    const inner = torrent._onMetadata
    if (typeof inner !== 'function') throw moved('hands metadata over')
    torrent._onMetadata = async (metadata) => {
      if (this.#info !== undefined) return
      const { id, infohash, info } = this.#join
      try {
        const layout = parseV1Torrent(info ?? asBytes(metadata), infohash)
        this.#info = layout.info
        if (layout.isPrivate) this.#deps.dht?.leave(infohash)
        this.#deps.tell({ kind: 'metadata', id, info: layout.info })
        await this.#opened.promise
        if (!torrent.destroyed) await inner.call(torrent, metadata)
      } catch (error) {
        this.#deps.tell({ kind: 'failed', id, message: messageOf(error) })
      }
    }
  }

  /** Peers name others with each connection, and webtorrent would keep them all. */
  #boundAddresses(): void {
    const torrent = this.#torrent
    if (typeof torrent._peersLength !== 'number') throw moved('counts its peers')
    torrent.addPeer = (address, source) =>
      tryParseAddress(address) !== undefined &&
      torrent._peersLength < MAX_ADDRESSES &&
      this.#known.admits(address, this.#deps.clock.monotonic()) &&
      this.#dial(address, source)
  }

  /** A piece that failed is requested from one peer at a time (see {@link Blame}). */
  #askOneAtATime(): void {
    const torrent = this.#torrent
    const inner = torrent._request
    if (typeof inner !== 'function' || typeof torrent._update !== 'function') throw moved('asks for blocks')
    torrent._request = (wire, piece, hotswap) => {
      const address = addressOf(wire)
      const now = this.#deps.clock.monotonic()
      if (!this.#blame.mayAsk(piece, address, now)) return false
      const asked = inner.call(torrent, wire, piece, hotswap)
      if (asked) this.#blame.asked(piece, address, now)
      return asked
    }
  }

  #startTrackers(): Trackers {
    const { tell, client, clock, port } = this.#deps
    const { id, infohash, trackers, policy = this.#deps.policy } = this.#join
    return new Trackers({
      urls: trackers,
      infohash: Buffer.from(infohash, 'hex'),
      peerId: Buffer.from(client.peerId, 'hex'),
      port,
      policy,
      clock,
      stats: () => {
        const { uploaded, downloaded, length } = this.#torrent
        return { uploaded, downloaded, left: length ? Math.max(0, length - downloaded) : UNKNOWN_LEFT }
      },
      found: (peer, allowed) => this.#found(peer, allowed),
      warn: (message) => tell({ kind: 'warning', id, message })
    })
  }

  #found(peer: PeerAddress, allowPrivate: boolean): void {
    if (isPublicAddress(peer.host) || (allowPrivate && this.#deps.policy !== 'internet')) {
      const address = formatAddress(peer)
      if (!this.#torrent.destroyed && !this.#blame.isBanned(address)) this.#torrent.addPeer(address)
    }
  }

  #watch(wire: WebTorrentWire, given: string | undefined): void {
    const address = given ?? addressOf(wire)
    if (this.#blame.isBanned(address)) return wire.destroy()
    const unchoke = wire.unchoke.bind(wire)
    // webtorrent unchokes each interested peer once, however many slots there are
    wire.unchoke = () => this.#mayUpload && unchoke()
    wire.on('piece', (piece: number, offset: number, block: Uint8Array) =>
      this.#blame.sent(piece, offset, block, addressOf(wire), this.#deps.clock.monotonic())
    )
    wire.once('close', () => this.#blame.left(addressOf(wire)))
  }

  #drop(liars: readonly string[]): void {
    for (const address of liars) {
      const message = `peer ${address} sent a wrong piece and was dropped`
      this.#deps.tell({ kind: 'warning', id: this.#join.id, message })
      if (this.#torrent.destroyed) continue
      this.#torrent.removePeer(address)
      for (const wire of this.#torrent.wires) if (addressOf(wire) === address) wire.destroy()
    }
  }
}

const moved = (what: string): SwarmV1Error =>
  new SwarmV1Error('E_SWARM_V1', 'client', `this version of webtorrent ${what} differently from the tested one`)

function addressOf({ remoteAddress, remotePort }: WebTorrentWire): string {
  return remoteAddress === undefined ? 'unknown' : formatAddress({ host: remoteAddress, port: remotePort ?? 0 })
}

/** Of a torrent that is being fetched; a piece is null once it is verified. */
const unverifiedBytes = ({ pieces }: WebTorrentTorrent): number =>
  pieces.reduce((sum, piece) => (piece === null ? sum : sum + piece.length - piece.missing), 0)

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function asBytes(metadata: unknown): Uint8Array {
  if (ArrayBuffer.isView(metadata)) return new Uint8Array(metadata.buffer, metadata.byteOffset, metadata.byteLength)
  throw new SwarmV1Error('E_SWARM_V1', 'metadata', 'the torrent client handed over no metadata bytes')
}

function fullBitfield(info: Uint8Array, infohash: string): Uint8Array {
  return new Uint8Array(Math.ceil(parseV1Torrent(info, infohash).pieceCount / 8)).fill(0xff)
}
