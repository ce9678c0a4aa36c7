import { formatAddress, type PeerAddress, plainAddress } from '@svc/internal-net'
import { SwarmError } from '../errors.ts'
import type { Emit, PeerEvent } from '../events.ts'
import type { ConnectionPlace } from '../net/connection-budget.ts'
import { dial } from '../net/dial.ts'
import type { Transport } from '../net/transport.ts'
import { Handshaking, openHandshake, type ShakenConnection } from '../peer/handshaking.ts'
import { Peer } from '../peer/peer.ts'
import type { Handshake } from '../wire/handshake.ts'
import type { TorrentEnvironment } from './environment.ts'
import { type AddressSource, PeerBook } from './peer-book.ts'
import { isFar } from './zone.ts'

export interface PeerSetDeps {
  readonly env: TorrentEnvironment
  readonly handshake: Handshake
  /** Undefined while the metadata is unknown. */
  readonly pieceCount: number | undefined
  readonly emit: Emit<PeerEvent['kind']>
}

const DIAL_TIMEOUT_MS = 10_000
const HANDSHAKE_TIMEOUT_MS = 10_000
const MAX_HALF_OPEN = 16
/** A peer that neither wants nor offers anything may be displaced after this time. */
export const INDIFFERENT_MS = 15_000
/** A peer that is interested, or has what we want, may wait this long for its turn. */
export const WAITING_MS = 120_000
/** If two connections of the same peers start within this time, the peers dialled each other simultaneously. */
const SIMULTANEOUS_MS = 10_000
/** Peers that have left and are remembered for what they sent. */
const MAX_LEFT = 500
/** The share of the places that far peers may have, once `SCARCE` of all are taken. */
const FAR_SHARE = 1 / 4
const SCARCE = 7 / 8

/**
 * The connections of one torrent: whom to dial and when, and who is connected.
 *
 * Invariants: all peer ids differ; each connection (including half-open ones) holds one place of the engine's budget.
 */
export class PeerSet {
  readonly book = new PeerBook()
  readonly #deps: PeerSetDeps
  readonly #peers = new Map<number, Peer>()
  readonly #places = new Map<number, ConnectionPlace>()
  /** Peers that have left, oldest first: what they sent may turn out to be wrong later. */
  readonly #left = new Map<number, Sender>()
  readonly #dialling = new Set<Transport>()
  #pieceCount: number | undefined
  #closed = false

  constructor(deps: PeerSetDeps) {
    this.#deps = deps
    this.#pieceCount = deps.pieceCount
  }

  get #nowMs(): number {
    return this.#deps.env.clock.monotonic()
  }

  get size(): number {
    return this.#peers.size
  }

  values(): IterableIterator<Peer> {
    return this.#peers.values()
  }

  /** The metadata is known: checks what peers announced before, and closes those that contradict it. */
  setPieceCount(count: number): void {
    this.#pieceCount = count
    for (const peer of [...this.#peers.values()]) {
      try {
        peer.pieces.setCount(count)
      } catch (error) {
        peer.close(error as Error)
      }
    }
  }

  /** Adds an address. `allowPrivate`: its source may name loopback and private addresses. */
  add(address: PeerAddress, source: AddressSource, allowPrivate: boolean): void {
    if (this.book.add(address, source, allowPrivate || this.#deps.env.trusted.has(address.host))) this.pump()
  }

  /** The listening addresses of connected peers, as `host:port`: they need not be dialled. */
  #connected(): ReadonlySet<string> {
    const connected = new Set<string>()
    for (const peer of this.#peers.values()) {
      const { listenAddress } = peer
      if (listenAddress !== undefined) connected.add(formatAddress(listenAddress))
    }
    return connected
  }

  /** Dials what may be dialled now. Called once a second as well, for addresses that wait for their next attempt. */
  pump(): void {
    if (this.#closed) return
    const now = this.#nowMs
    const connected = this.#connected()
    let misses = 0
    while (
      misses < MAX_HALF_OPEN &&
      this.#dialling.size < MAX_HALF_OPEN &&
      this.#peers.size + this.#dialling.size < this.#deps.env.maxPeersPerTorrent
    ) {
      const next = this.book.next(now, connected, this.#takesFar())
      if (next === undefined) break
      const place = this.#deps.env.connections.acquire('outgoing', next.address.host)
      if (typeof place === 'string') {
        this.book.over(next.address, 'no-place', now)
        if (place === 'full') break
        misses += 1
        continue
      }
      this.#dial(next.address, next.encrypted, place)
    }
  }

  #dial(address: PeerAddress, encrypted: boolean, place: ConnectionPlace): void {
    let opened = false
    let transport: Transport
    try {
      transport = dial({
        ...address,
        timeoutMs: DIAL_TIMEOUT_MS,
        clock: this.#deps.env.clock,
        opened: () => {
          opened = true
          handshaking.start()
        }
      })
    } catch {
      // Node refuses some hosts at once.
      place.release()
      this.book.forget(address)
      return
    }
    const handshaking = new Handshaking(
      transport,
      openHandshake(this.#deps.handshake, encrypted),
      {
        done: (connection) => {
          this.#dialling.delete(transport)
          this.#join(connection, address, false, place)
        },
        failed: (error) => {
          this.#dialling.delete(transport)
          place.release()
          if (error instanceof SwarmError && error.reason === 'self') this.book.markSelf(address)
          // the peer closed the connection after our plain handshake: it may require encryption.
          this.book.over(address, opened ? 'closed-early' : 'failed', this.#nowMs)
          this.pump()
        }
      },
      { clock: this.#deps.env.clock, timeoutMs: DIAL_TIMEOUT_MS + HANDSHAKE_TIMEOUT_MS }
    )
    this.#dialling.add(transport)
  }

  /** An accepted connection whose handshake names this torrent; it already holds a place of the engine. */
  accept(connection: ShakenConnection, place: ConnectionPlace): void {
    const { transport } = connection
    const { remoteAddress, remotePort } = transport.socket
    const address = { host: plainAddress(remoteAddress ?? ''), port: remotePort ?? 0 }
    if (this.#closed || !this.book.admits(address, this.#nowMs) || !this.#hasRoom()) return refuse(transport, place)
    this.#join(connection, address, true, place)
  }

  /** Whether there is room for one more peer; the least useful one is closed if necessary. */
  #hasRoom(): boolean {
    if (this.#peers.size < this.#deps.env.maxPeersPerTorrent) return true
    const useless = this.mostUseless(this.#nowMs)
    useless?.peer.close(new SwarmError('E_CLOSED', 'useless', 'another peer takes its place'))
    return useless !== undefined
  }

  #join(connection: ShakenConnection, address: PeerAddress, incoming: boolean, place: ConnectionPlace): void {
    const { handshake, transport, rest } = connection
    const now = this.#nowMs
    const other = this.#withPeerId(handshake.peerId)
    if (other !== undefined && !this.#gaveWay(other, handshake, incoming, now)) {
      refuse(transport, place)
      if (!incoming) this.book.over(address, 'worked', now)
      return
    }
    const peer = new Peer({
      id: this.#deps.env.nextId(),
      address,
      incoming,
      handshake,
      transport,
      trusted: this.#deps.env.trusted.has(plainAddress(transport.socket.remoteAddress ?? '')),
      pieceCount: this.#pieceCount,
      emit: this.#deps.emit,
      clock: this.#deps.env.clock
    })
    this.#peers.set(peer.id, peer)
    this.#places.set(peer.id, place)
    transport.setSink(peer.sink)
    this.#deps.emit({ kind: 'joined', peer })
    if (rest.length > 0 && !peer.closed) peer.sink.data(rest, this.#nowMs)
  }

  /** The peer has named its zone, or none; false: no place. Far ones keep a quarter, so that zones stay connected to each other. */
  stands(peer: Peer): boolean {
    if (!isFar(peer, this.#deps.env.zone)) return true
    if (!peer.incoming) this.book.markFar(peer.address)
    const { maxPeersPerTorrent } = this.#deps.env
    if (this.#peers.size < maxPeersPerTorrent * SCARCE || this.#farCount() <= maxPeersPerTorrent * FAR_SHARE)
      return true
    peer.close(new SwarmError('E_CLOSED', 'far', 'the places are kept for nearer peers'))
    return false
  }

  #farCount(): number {
    let count = 0
    for (const peer of this.#peers.values()) if (isFar(peer, this.#deps.env.zone)) count += 1
    return count
  }

  #takesFar(): boolean {
    const { zone, maxPeersPerTorrent } = this.#deps.env
    return zone === undefined || this.#farCount() < maxPeersPerTorrent * FAR_SHARE
  }

  #withPeerId(peerId: Uint8Array): Peer | undefined {
    for (const peer of this.#peers.values()) if (Buffer.compare(peer.handshake.peerId, peerId) === 0) return peer
    return undefined
  }

  /**
   * True when the older connection was dropped. Two peers that dial each other at the same time must drop the same one:
   * the one opened by the greater peer id stays.
   */
  #gaveWay(older: Peer, handshake: Handshake, incoming: boolean, nowMs: number): boolean {
    if (older.incoming === incoming || nowMs - older.joinedAt > SIMULTANEOUS_MS) return false
    const theirsIsGreater = Buffer.compare(handshake.peerId, this.#deps.handshake.peerId) > 0
    if (theirsIsGreater !== incoming) return false
    older.close()
    return true
  }

  /** The peer that has been useless for longest, and for how long; none of those that we dialled. */
  mostUseless(nowMs: number): { readonly peer: Peer; readonly forMs: number } | undefined {
    let worst: { peer: Peer; forMs: number } | undefined
    for (const peer of this.#peers.values()) {
      const forMs = uselessForMs(peer, nowMs)
      if (forMs > 0 && (worst === undefined || forMs > worst.forMs)) worst = { peer, forMs }
    }
    return worst
  }

  /** Called after the peer's `closed`. */
  gone(peer: Peer): void {
    if (!this.#peers.delete(peer.id)) return
    this.#places.get(peer.id)!.release()
    this.#places.delete(peer.id)
    if (!this.book.isBanned(peer.address)) this.#remember(peer)
    if (!peer.incoming) this.book.over(peer.address, 'worked', this.#nowMs)
    this.pump()
  }

  #remember(peer: Peer): void {
    this.#left.set(peer.id, senderOf(peer))
    for (const oldest of this.#left.keys()) {
      if (this.#left.size <= MAX_LEFT) break
      this.#left.delete(oldest)
    }
  }

  /** Bans a peer, also one that has left, and closes its connections. @returns its label; undefined: unknown or banned before */
  ban(id: number, error: Error): string | undefined {
    const peer = this.#peers.get(id)
    const sender = peer === undefined ? this.#left.get(id) : senderOf(peer)
    if (sender === undefined) return undefined
    this.#left.delete(id)
    const now = this.#nowMs
    this.book.ban(sender.address, now)
    // if it was dialled by name, it may come back by its address.
    this.book.ban({ host: sender.remoteHost, port: sender.address.port }, now)
    const address = formatAddress(sender.address)
    for (const other of [...this.#peers.values()])
      if (other === peer || formatAddress(other.address) === address) other.close(error)
    return sender.label
  }

  close(): void {
    this.#closed = true
    for (const transport of [...this.#dialling]) transport.close()
    for (const peer of [...this.#peers.values()]) peer.close()
  }
}

function refuse(transport: Transport, place: ConnectionPlace): void {
  transport.close()
  place.release()
}

/** A sender of pieces, as remembered when the peer has left. */
interface Sender {
  readonly address: PeerAddress
  readonly remoteHost: string
  readonly label: string
}

const senderOf = (peer: Peer): Sender => ({
  address: peer.address,
  remoteHost: peer.remoteHost,
  label: peerLabel(peer)
})

export const peerLabel = (peer: Peer): string =>
  `${formatAddress(peer.address)}${peer.extended?.client === undefined ? '' : ` (${peer.extended.client})`}`

/** How many milliseconds an incoming peer has been useless beyond what it is allowed; 0 for others: we chose them. Pure. */
export function uselessForMs(
  peer: Pick<Peer, 'incoming' | 'amInterested' | 'peerInterested' | 'uploadActiveAt' | 'downloadActiveAt'>,
  nowMs: number
): number {
  if (!peer.incoming) return 0
  const idleMs = nowMs - Math.max(peer.uploadActiveAt, peer.downloadActiveAt)
  const allowedMs = peer.amInterested || peer.peerInterested ? WAITING_MS : INDIFFERENT_MS
  return Math.max(0, idleMs - allowedMs)
}
