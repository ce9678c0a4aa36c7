import { formatAddress, isPublicAddress, type PeerAddress } from '@svc/internal-net'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { formatPex, MAX_PEX_PEERS, parsePex } from '../wire/extensions.ts'

const INTERVAL_MS = 60_000
/** Messages of one peer that arrive faster than this are ignored; too many of them end the connection. */
const MIN_INTERVAL_MS = 10_000
const MAX_IGNORED = 20

export type PexPeer = Pick<Peer, 'id' | 'remoteHost' | 'listenAddress' | 'extended' | 'sendExtension'>

interface State {
  readonly told: Map<string, PeerAddress>
  sentAt: number
  receivedAt: number
  ignored: number
}

/**
 * Peer exchange (BEP 11) of one torrent: sends each peer the addresses of others, once a minute and at most 50 at a
 * time, and accepts theirs. Private addresses are sent to peers on private addresses only.
 */
export class PeerExchange {
  readonly #states = new Map<number, State>()
  readonly #found: (address: PeerAddress, allowPrivate: boolean) => void

  constructor(found: (address: PeerAddress, allowPrivate: boolean) => void) {
    this.#found = found
  }

  /** The peer supports the extension: it receives the first addresses at once. */
  joined(peer: PexPeer, peers: Iterable<PexPeer>, nowMs: number): void {
    if (!peer.extended?.ids.get('ut_pex') || this.#states.has(peer.id)) return
    const state: State = { told: new Map(), sentAt: -Infinity, receivedAt: -Infinity, ignored: 0 }
    this.#states.set(peer.id, state)
    this.#tell(peer, state, peers, nowMs)
  }

  #tell(peer: PexPeer, state: State, peers: Iterable<PexPeer>, nowMs: number): void {
    const current = new Map<string, PeerAddress>()
    const toPrivate = !isPublicAddress(peer.remoteHost)
    for (const other of peers) {
      const address = other === peer ? undefined : other.listenAddress
      if (address !== undefined && (toPrivate || isPublicAddress(address.host)))
        current.set(formatAddress(address), address)
    }
    const added = [...current].filter(([key]) => !state.told.has(key)).slice(0, MAX_PEX_PEERS)
    const dropped = [...state.told].filter(([key]) => !current.has(key)).slice(0, MAX_PEX_PEERS)
    if (added.length === 0 && dropped.length === 0) return
    for (const [key, address] of added) state.told.set(key, address)
    for (const [key] of dropped) state.told.delete(key)
    state.sentAt = nowMs
    peer.sendExtension(
      'ut_pex',
      formatPex(
        added.map(([, address]) => address),
        dropped.map(([, address]) => address)
      )
    )
  }

  message(peer: PexPeer, payload: Uint8Array, nowMs: number): void {
    const state = this.#states.get(peer.id)
    if (state === undefined) return
    if (nowMs - state.receivedAt < MIN_INTERVAL_MS) {
      state.ignored += 1
      if (state.ignored > MAX_IGNORED) throw protocolError('flood', 'too many peer exchange messages')
      return
    }
    state.receivedAt = nowMs
    // judged by the address that the socket is connected to, not by the name that was dialled: a name does not show
    // that the peer is on our own network.
    const allowPrivate = !isPublicAddress(peer.remoteHost)
    for (const address of parsePex(payload)) this.#found(address, allowPrivate)
  }

  gone(peer: PexPeer): void {
    this.#states.delete(peer.id)
  }

  tick(peers: Iterable<PexPeer>, nowMs: number): void {
    const all = [...peers]
    for (const peer of all) {
      const state = this.#states.get(peer.id)
      if (state !== undefined && nowMs - state.sentAt >= INTERVAL_MS) this.#tell(peer, state, all, nowMs)
    }
  }
}
