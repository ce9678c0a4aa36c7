import { isIP } from 'node:net'
import { BannedPeers, formatAddress, isHost, isPort, isPublicAddress, type PeerAddress } from '@svc/internal-net'

/** `stranger`: a tracker, the DHT, the local network or another peer. */
export type AddressSource = 'user' | 'stranger'

interface KnownPeer {
  readonly address: PeerAddress
  readonly source: AddressSource
  failures: number
  nextDialAt: number
  busy: boolean
  /** The next attempt starts with the encryption handshake. */
  encrypted: boolean
  /** It is in another zone. */
  far: boolean
}

/** Limit of addresses per torrent; further ones from strangers are dropped. */
const MAX_ADDRESSES = 2_000
const MAX_FAILURES = 6

/**
 * The known addresses, which of them to dial next, and the banned ones. Addresses from strangers must be public, unless
 * private ones are allowed; those from the user are always accepted.
 *
 * Invariants: at most 2,000 entries; a banned address is never returned.
 */
export class PeerBook {
  readonly #entries = new Map<string, KnownPeer>()
  readonly #banned = new BannedPeers()
  readonly #self = new Set<string>()

  get size(): number {
    return this.#entries.size
  }

  /** True when the address is new and accepted. `allowPrivate`: its source is on a private address itself. */
  add(address: PeerAddress, source: AddressSource, allowPrivate: boolean): boolean {
    if (!isPort(address.port) || !isHost(address.host)) return false
    if (source !== 'user' && (isIP(address.host) === 0 || (!allowPrivate && !isPublicAddress(address.host))))
      return false
    const key = formatAddress(address)
    if (this.isBanned(address) || this.#self.has(key)) return false
    const known = this.#entries.get(key)
    if (known !== undefined) {
      if (source !== 'user' || known.busy) return false
      known.failures = 0
      known.nextDialAt = 0
      return true
    }
    if (this.#entries.size >= MAX_ADDRESSES && !this.#makeRoom()) return false
    this.#entries.set(key, { address, source, failures: 0, nextDialAt: 0, busy: false, encrypted: false, far: false })
    return true
  }

  sourceOf(address: PeerAddress): AddressSource {
    return this.#entries.get(formatAddress(address))?.source ?? 'stranger'
  }

  #makeRoom(): boolean {
    let worst: string | undefined
    let failures = -1
    for (const [key, entry] of this.#entries) {
      if (entry.busy || entry.source === 'user' || entry.failures <= failures) continue
      worst = key
      failures = entry.failures
    }
    return worst !== undefined && this.#entries.delete(worst)
  }

  /** The next address to dial, marked as busy; none of those in `connected` (`host:port`), no far one without `takesFar`. */
  next(
    nowMs: number,
    connected: ReadonlySet<string>,
    takesFar = true
  ): { readonly address: PeerAddress; readonly encrypted: boolean } | undefined {
    let best: KnownPeer | undefined
    for (const [key, entry] of this.#entries) {
      if (entry.busy || entry.nextDialAt > nowMs || connected.has(key) || (entry.far && !takesFar)) continue
      if (best === undefined || rank(entry) < rank(best)) best = entry
    }
    if (best === undefined) return undefined
    best.busy = true
    return { address: best.address, encrypted: best.encrypted }
  }

  /** The connection to an address from `next` ended. `closed-early`: the peer closed it instead of answering our handshake. */
  over(address: PeerAddress, outcome: 'worked' | 'failed' | 'closed-early' | 'no-place', nowMs: number): void {
    const key = formatAddress(address)
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    entry.busy = false
    if (outcome === 'no-place') {
      entry.nextDialAt = nowMs + 1_000
      return
    }
    if (outcome === 'worked') {
      entry.failures = Math.min(entry.failures + 1, 2)
      entry.nextDialAt = nowMs + 5_000 * entry.failures
      return
    }
    if (outcome === 'closed-early' && !entry.encrypted) {
      entry.encrypted = true
      entry.nextDialAt = nowMs
      return
    }
    entry.encrypted = false
    entry.failures += 1
    // addresses from the user are kept: that peer may come back.
    if (entry.failures > MAX_FAILURES && entry.source !== 'user') this.#entries.delete(key)
    entry.nextDialAt = nowMs + Math.min(300_000, 2_000 * 2 ** Math.min(entry.failures - 1, 8))
  }

  markSelf(address: PeerAddress): void {
    const key = formatAddress(address)
    this.#self.add(key)
    this.#entries.delete(key)
  }

  /** The peer there is in another zone: nearer ones are dialled first. */
  markFar(address: PeerAddress): void {
    const entry = this.#entries.get(formatAddress(address))
    if (entry !== undefined) entry.far = true
  }

  forget(address: PeerAddress): void {
    this.#entries.delete(formatAddress(address))
  }

  ban(address: PeerAddress, nowMs: number): void {
    this.#banned.ban(address, nowMs)
    for (const [key, entry] of this.#entries) if (this.isBanned(entry.address)) this.#entries.delete(key)
  }

  isBanned(address: PeerAddress): boolean {
    return this.#banned.isBanned(address)
  }

  /** Whether an incoming connection from there may stay. */
  admits(address: PeerAddress, nowMs: number): boolean {
    return this.#banned.admits(address, nowMs)
  }
}

const rank = (entry: KnownPeer): number => entry.failures * 10 + (entry.far ? 5 : 0) + (entry.source === 'user' ? 0 : 1)
