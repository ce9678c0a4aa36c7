import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { parseIPv6 } from './address.ts'

/** An address range: a CIDR block, or one address. */
interface AddressRange {
  readonly network: string
  /** Length of the prefix in bits. */
  readonly bits: number
  readonly family: 4 | 6
}

/** Parses `10.0.0.0/8`, `fd00::/8`, or one address; undefined for others, as for bits set after the prefix. */
export function tryParseRange(text: string): AddressRange | undefined {
  const [, network = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(network)
  if (family !== 4 && family !== 6) return undefined
  // a zone names an interface of one machine
  if (network.includes('%')) return undefined
  const width = family === 4 ? 32 : 128
  const bits = prefix === undefined ? width : Number(prefix)
  if (bits > width || hasBitsBeyond(network, family, bits)) return undefined
  return { network, bits, family }
}

/** `10.1.2.3/8` is ambiguous: it could mean `10.0.0.0/8` or one machine. */
function hasBitsBeyond(network: string, family: 4 | 6, bits: number): boolean {
  const bytes = (family === 4 ? ipaddr.IPv4.parse(network) : parseIPv6(network)).toByteArray()
  return bytes.some((byte, at) => (byte & (0xff >> Math.max(0, Math.min(8, bits - 8 * at)))) !== 0)
}

/** A set of address ranges. It contains no host names. */
export class AddressRanges {
  readonly #list = new BlockList()
  readonly isEmpty: boolean

  constructor(ranges: readonly AddressRange[]) {
    this.isEmpty = ranges.length === 0
    for (const { network, bits, family } of ranges) this.#list.addSubnet(network, bits, family === 4 ? 'ipv4' : 'ipv6')
  }

  /** An IPv4 address inside IPv6 (`::ffff:192.0.2.1`) counts as the IPv4 address. */
  has(ip: string): boolean {
    if (this.isEmpty) return false
    const family = isIP(ip)
    return family !== 0 && !ip.includes('%') && this.#list.check(ip, family === 4 ? 'ipv4' : 'ipv6')
  }
}
