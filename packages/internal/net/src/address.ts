import { BlockList, isIP, isIPv6 } from 'node:net'
import { isHost, isPort } from './host.ts'

/** Somewhere a peer listens. */
export interface PeerAddress {
  readonly host: string
  readonly port: number
}

const nonPublic = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4]
] as const)
  nonPublic.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 32],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8]
] as const)
  nonPublic.addSubnet(net, bits, 'ipv6')

/** True for an IP address that may be contacted on a stranger's word: not loopback, private, link-local, reserved. */
export function isPublicAddress(ip: string): boolean {
  const family = isIP(ip)
  if (family === 0) return false
  if (family === 4) return !nonPublic.check(ip, 'ipv4')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)
  if (mapped !== null) return isPublicAddress(mapped[1]!)
  if (/^::ffff:/i.test(ip)) return false
  return !nonPublic.check(ip, 'ipv6')
}

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
    const ip = bytes.subarray(at, at + addressBytes)
    let host: string
    if (addressBytes === 4) host = ip.join('.')
    else {
      const groups: string[] = []
      for (let i = 0; i < 16; i += 2) groups.push(((ip[i]! << 8) | ip[i + 1]!).toString(16))
      host = groups.join(':')
    }
    peers.push({ host, port })
  }
  return peers
}

/** The IPv4 peers of a list in compact form (BEP 23). */
export function formatCompact4(peers: readonly PeerAddress[]): Uint8Array {
  const four = peers.filter((peer) => isIP(peer.host) === 4)
  const out = new Uint8Array(four.length * 6)
  four.forEach((peer, index) => {
    out.set(peer.host.split('.').map(Number), index * 6)
    out[index * 6 + 4] = peer.port >> 8
    out[index * 6 + 5] = peer.port & 255
  })
  return out
}
