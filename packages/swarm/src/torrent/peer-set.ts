import { formatAddress, type PeerAddress } from '@svc/internal-net'
import { SwarmError } from '../errors.ts'
import { dial } from '../net/dial.ts'
import type { Transport } from '../net/transport.ts'
import { OutgoingHandshake } from '../peer/handshaking.ts'
import { Peer, type PeerOwner } from '../peer/peer.ts'
import type { Handshake } from '../wire/handshake.ts'
import { type AddressSource, PeerBook } from './peer-book.ts'

/** What all torrents share about connections. */
export interface ConnectionLimits {
  readonly maxPeersPerTorrent: number
  /** Takes one of the engine's connections; false: none is left. */
  readonly take: () => boolean
  readonly give: () => void
  readonly nextPeerId: () => number
}

export interface PeerSetHooks {
  readonly owner: PeerOwner
  readonly handshake: () => Handshake
  readonly joined: (peer: Peer) => void
  /** Incoming or outgoing, before it counts. */
  readonly limits: ConnectionLimits
}

const DIAL_TIMEOUT_MS = 10_000
const HANDSHAKE_TIMEOUT_MS = 10_000
const HALF_OPEN = 16

/**
 * The connections of one torrent: whom to dial and when, who is connected.
 * Invariants: peers have different peer ids; each connection (half-open ones too) holds one of the engine's places.
 */
export class PeerSet {
  readonly book = new PeerBook()
  readonly #hooks: PeerSetHooks
  readonly #peers = new Map<number, Peer>()
  readonly #dialling = new Set<Transport>()
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** False: connections are taken but not opened. */
  dialling = true

  constructor(hooks: PeerSetHooks) {
    this.#hooks = hooks
  }

  get size(): number {
    return this.#peers.size
  }

  values(): IterableIterator<Peer> {
    return this.#peers.values()
  }

  get(id: number): Peer | undefined {
    return this.#peers.get(id)
  }

  add(address: PeerAddress, source: AddressSource, allowPrivate: boolean): void {
    if (this.book.add(address, source, allowPrivate)) this.pump()
  }

  /** Dials whoever is due. */
  pump(): void {
    if (this.#closed || !this.dialling) return
    const now = performance.now()
    while (
      this.#dialling.size < HALF_OPEN &&
      this.#peers.size + this.#dialling.size < this.#hooks.limits.maxPeersPerTorrent
    ) {
      if (!this.#hooks.limits.take()) break
      const next = this.book.next(now)
      if (next === undefined) {
        this.#hooks.limits.give()
        break
      }
      this.#dial(next.address, next.encrypted)
    }
    this.#arm(now)
  }

  #arm(now: number): void {
    if (this.#timer !== undefined) return
    const wait = this.book.nextInMs(now)
    if (wait === undefined) return
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.pump()
      },
      Math.max(200, wait)
    )
    this.#timer.unref()
  }

  #dial(address: PeerAddress, encrypted: boolean): void {
    let opened = false
    let handshaking: OutgoingHandshake | undefined
    const transport = dial(
      {
        ...address,
        timeoutMs: DIAL_TIMEOUT_MS,
        opened: () => {
          opened = true
          handshaking!.start()
        }
      },
      { data: (bytes) => handshaking!.data(bytes), closed: (error) => handshaking!.closed(error) }
    )
    handshaking = new OutgoingHandshake(
      transport,
      this.#hooks.handshake(),
      encrypted,
      {
        done: (handshake, open, rest) => {
          this.#dialling.delete(transport)
          this.#join(handshake, open, rest, address, false)
        },
        failed: (error) => {
          this.#dialling.delete(transport)
          this.#hooks.limits.give()
          if (error instanceof SwarmError && error.reason === 'self') this.book.isSelf(address)
          // Closed by the peer after our plain handshake: it may insist on encryption.
          this.book.over(address, opened ? 'closed-early' : 'failed', performance.now())
          this.pump()
        }
      },
      DIAL_TIMEOUT_MS + HANDSHAKE_TIMEOUT_MS
    )
    this.#dialling.add(transport)
  }

  /** An accepted connection whose handshake names this torrent; holds a place of the engine already. */
  accept(handshake: Handshake, transport: Transport, rest: Uint8Array): void {
    const { remoteAddress, remotePort } = transport.socket
    const address = { host: (remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, ''), port: remotePort ?? 0 }
    if (this.#closed || this.#peers.size >= this.#hooks.limits.maxPeersPerTorrent || this.book.isBanned(address)) {
      transport.close()
      this.#hooks.limits.give()
      return
    }
    this.#join(handshake, transport, rest, address, true)
  }

  #join(handshake: Handshake, transport: Transport, rest: Uint8Array, address: PeerAddress, incoming: boolean): void {
    for (const other of this.#peers.values()) {
      if (Buffer.compare(other.handshake.peerId, handshake.peerId) !== 0) continue
      transport.setSink({ data: () => undefined, closed: () => undefined })
      transport.close()
      this.#hooks.limits.give()
      if (!incoming) this.book.over(address, 'worked', performance.now())
      return
    }
    const peer = new Peer({
      id: this.#hooks.limits.nextPeerId(),
      address,
      incoming,
      handshake,
      transport,
      owner: this.#hooks.owner,
      nowMs: performance.now()
    })
    this.#peers.set(peer.id, peer)
    transport.setSink(peer.sink)
    this.#hooks.joined(peer)
    if (rest.length > 0 && !peer.closed) peer.sink.data(rest)
  }

  /** The owner was told that the peer is gone. */
  gone(peer: Peer): void {
    if (!this.#peers.delete(peer.id)) return
    this.#hooks.limits.give()
    if (!peer.incoming) this.book.over(peer.address, 'worked', performance.now())
    this.pump()
  }

  ban(peer: Peer, error: Error): void {
    this.book.ban(peer.address)
    peer.close(error)
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== undefined) clearTimeout(this.#timer)
    for (const transport of [...this.#dialling]) transport.close()
    for (const peer of [...this.#peers.values()]) peer.close()
  }

  checkInvariants(): void {
    this.book.checkInvariants()
    const ids = new Set([...this.#peers.values()].map((peer) => Buffer.from(peer.handshake.peerId).toString('hex')))
    if (ids.size !== this.#peers.size) throw new Error('one peer is connected twice')
  }
}

export const peerLabel = (peer: Peer): string =>
  `${formatAddress(peer.address)}${peer.extended?.client === undefined ? '' : ` (${peer.extended.client})`}`
