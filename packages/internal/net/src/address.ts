import { isIP, isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isHost, isPort } from './host.ts'

/** The address on which a peer listens. */
export interface PeerAddress {
  readonly host: string
  readonly port: number
}

/** Where an address can be reached from; `other`: only from the link, from nowhere, or through a tunnel. */
export type AddressReach = 'public' | 'private' | 'loopback' | 'other'

/**
 * True for an IP address that a stranger may direct us to: a unicast address of the public internet. That excludes
 * loopback, private, link-local, shared, reserved, multicast and documentation addresses, and those that tunnel
 * elsewhere (6to4, Teredo, local NAT64). Names are not addresses: false.
 */
export const isPublicAddress = (ip: string): boolean => addressReach(ip) === 'public'

/**
 * The reach of an IP address. IPv4 inside IPv6 is judged as the IPv4 address where it is mapped; with the well-known
 * NAT64 prefix (RFC 6052) only a public one counts. Names are not addresses: `other`.
 */
export function addressReach(ip: string): AddressReach {
  // ipaddr.js also accepts unusual spellings of IPv4.
  if (isIP(ip) === 0) return 'other'
  if (isIPv4(ip)) return reachOfIPv4(ip)
  const address = parseIPv6(ip)
  const range = address.range()
  if (range === 'loopback') return 'loopback'
  const { parts } = address
  const prefix = parts.slice(0, 6).join()
  const [high, low] = parts.slice(6) as [number, number]
  const inner = reachOfIPv4([high >> 8, high & 255, low >> 8, low & 255].join('.'))
  if (prefix === IPV4_MAPPED) return inner
  if (prefix === NAT64) return inner === 'public' ? 'public' : 'other'
  if (prefix === IPV4_COMPATIBLE) return 'other'
  if (range === 'uniqueLocal') return 'private'
  return range === 'unicast' ? 'public' : 'other'
}

/** Whether only programs of this machine reach a listening address. */
export const isLoopback = ({ host }: Pick<PeerAddress, 'host'>): boolean =>
  host === 'localhost' || addressReach(host) === 'loopback'

/** The part of ipaddr.js's address that is used: types of packages that bundle it must not name it. */
interface IPv6Address {
  readonly parts: readonly number[]
  range(): string
  toByteArray(): number[]
}

/** Without its zone. The URL parser writes `::8.8.8.8` in hexadecimal, which ipaddr.js would take for a mapped address. */
export const parseIPv6 = (ip: string): IPv6Address =>
  ipaddr.IPv6.parse(new URL(`http://[${ip.replace(/%.*$/, '')}]`).hostname.slice(1, -1))

function reachOfIPv4(ip: string): AddressReach {
  const range = ipaddr.IPv4.parse(ip).range()
  if (range === 'unicast') return 'public'
  if (range === 'loopback') return 'loopback'
  // resolvers of tunnels answer with addresses of the benchmark range (RFC 2544): a private network as well
  return range === 'private' || range === 'carrierGradeNat' || /^198\.1[89]\./.test(ip) ? 'private' : 'other'
}

/** ::/96 */
const IPV4_COMPATIBLE = [0, 0, 0, 0, 0, 0].join()
/** ::ffff:0:0/96 */
const IPV4_MAPPED = [0, 0, 0, 0, 0, 0xffff].join()
/** 64:ff9b::/96 */
const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0].join()

/** `host:port`, IPv6 in brackets. */
export const formatAddress = (address: PeerAddress): string =>
  address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`

/** `host:port` or `[v6]:port`; a host may be a name, see {@link isHost}. Undefined when it is neither. */
export function tryParseAddress(text: string): PeerAddress | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  if (match === null) return undefined
  const [, bracketed, plain] = match
  const port = Number(match[3])
  if (!isPort(port)) return undefined
  if (bracketed !== undefined) return isIPv6(bracketed) && isHost(bracketed) ? { host: bracketed, port } : undefined
  return isHost(plain!) ? { host: plain!, port } : undefined
}

/** Compact peers (BEP 23): 6 bytes each for IPv4, 18 for IPv6. Entries without a port are dropped. */
export function parseCompact(bytes: Uint8Array, addressBytes: 4 | 16): PeerAddress[] {
  const peers: PeerAddress[] = []
  const step = addressBytes + 2
  for (let at = 0; at + step <= bytes.length; at += step) {
    const port = (bytes[at + addressBytes]! << 8) | bytes[at + addressBytes + 1]!
    if (port === 0) continue
    const ip = ipaddr.fromByteArray([...bytes.subarray(at, at + addressBytes)])
    peers.push({ host: ip.toNormalizedString(), port })
  }
  return peers
}

/** The inverse of {@link parseCompact}, of the peers with an address of that length. */
export function formatCompact(peers: readonly PeerAddress[], addressBytes: 4 | 16): Uint8Array {
  const fitting = peers.filter(({ host }) => isIP(host) === (addressBytes === 4 ? 4 : 6) && !host.includes('%'))
  return Uint8Array.from(
    fitting.flatMap(({ host, port }) => [
      ...(addressBytes === 4 ? ipaddr.IPv4.parse(host) : parseIPv6(host)).toByteArray(),
      port >> 8,
      port & 255
    ])
  )
}
