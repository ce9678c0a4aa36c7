import { lookup as dnsLookup } from 'node:dns'
import { lookup as dnsLookupAll } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const inner = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4]
] as const) {
  inner.addSubnet(net, prefix, 'ipv4')
}
for (const [net, prefix] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8]
] as const) {
  inner.addSubnet(net, prefix, 'ipv6')
}
const translated = new BlockList()
translated.addSubnet('64:ff9b::', 96, 'ipv6')

/**
 * True for addresses that a stranger's redirect must not reach: loopback, private, link-local, shared, multicast,
 * reserved; IPv4 inside IPv6 counts as the IPv4 address.
 */
export function isInnerAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 0) return false
  if (family === 4) return inner.check(address, 'ipv4')
  const bare = address.replace(/%.*$/, '')
  if (translated.check(bare, 'ipv6')) return inner.check(embeddedIpv4(bare), 'ipv4')
  return inner.check(bare, 'ipv6')
}

/** The last 32 bits of a NAT64 address. */
function embeddedIpv4(address: string): string {
  const dotted = /(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1]
  if (dotted !== undefined) return dotted
  const host = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [high, low] = (host.split('::')[1] ?? '0')
    .split(':')
    .slice(-2)
    .map((g) => Number.parseInt(g || '0', 16)) as [number, number?]
  const value = low === undefined ? high : high * 65_536 + low
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}

/** A URL's host without the brackets of IPv6. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** True where the host alone tells that it is an inner one: a literal address, or a `localhost` name (RFC 6761 §6.3). */
export function isInnerHost(host: string): boolean {
  return isInnerAddress(host) || /^(?:.*\.)?localhost\.?$/i.test(host)
}

/** Whether the host is, or is resolved to, an inner address; false where it cannot be resolved from here. */
export async function resolvesToInner(host: string): Promise<boolean> {
  if (isInnerHost(host)) return true
  if (isIP(host) !== 0) return false
  try {
    return (await dnsLookupAll(host, { all: true })).some((found) => isInnerAddress(found.address))
  } catch {
    // Behind a proxy names need not resolve here; a public endpoint is then the stricter assumption.
    return false
  }
}

export class InnerAddressError extends Error {
  override readonly name = 'InnerAddressError'
  readonly code = 'ERR_INNER_ADDRESS'
}

/** A `lookup` for sockets that refuses names with any inner address: what was checked is what is connected to. */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  dnsLookup(hostname, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, '', 0)
    if (found.length === 0 || found.some((one) => isInnerAddress(one.address))) {
      return callback(new InnerAddressError(`${hostname} is on a loopback or private address`), '', 0)
    }
    if (options.all) return callback(null, found)
    const first = found[0] as { address: string; family: number }
    callback(null, first.address, first.family)
  })
}
