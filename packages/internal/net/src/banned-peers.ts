import { isIPv6 } from 'node:net'
import { formatAddress, isPublicAddress, type PeerAddress } from './address.ts'
import { hostKey } from './host-key.ts'

const MAX_BANNED_OF_NETWORK = 4
const PAUSE_MS = 1_000
const MAX_PAUSE_MS = 300_000

/**
 * Peers that are proven to have lied. A public address is banned with all its ports; behind a private one there may be several
 * peers. IPv6 addresses cost nothing, so after a few of one /64 it is banned as a whole. Ports of connections that came in cost
 * nothing either: from a private host of which several were banned, others wait, longer each time.
 */
export class BannedPeers {
  readonly #banned = new Set<string>()
  /** Banned addresses of each IPv6 /64. */
  readonly #bannedOf = new Map<string, number>()
  /** By private host: how many of its ports are banned, and when the last one was. */
  readonly #ports = new Map<string, { count: number; atMs: number }>()

  ban(address: PeerAddress, nowMs: number): void {
    const key = banKey(address)
    if (this.#banned.has(key)) return
    this.#banned.add(key)
    const host = hostKey(address.host)
    if (!isPublicAddress(address.host)) {
      this.#ports.set(host, { count: (this.#ports.get(host)?.count ?? 0) + 1, atMs: nowMs })
    } else if (isIPv6(address.host)) {
      const count = (this.#bannedOf.get(host) ?? 0) + 1
      this.#bannedOf.set(host, count)
      if (count === MAX_BANNED_OF_NETWORK) this.#banned.add(host)
    }
  }

  isBanned(address: PeerAddress): boolean {
    return this.#banned.has(banKey(address)) || this.#banned.has(hostKey(address.host))
  }

  /** Whether a connection that comes in from there may stay. */
  admits(address: PeerAddress, nowMs: number): boolean {
    if (this.isBanned(address)) return false
    const { count, atMs } = this.#ports.get(hostKey(address.host)) ?? { count: 0, atMs: 0 }
    if (count < MAX_BANNED_OF_NETWORK) return true
    return nowMs - atMs >= Math.min(MAX_PAUSE_MS, PAUSE_MS * 2 ** (count - MAX_BANNED_OF_NETWORK))
  }
}

const banKey = (address: PeerAddress): string => (isPublicAddress(address.host) ? address.host : formatAddress(address))
