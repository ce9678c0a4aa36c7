import { BlockList, isIP } from 'node:net'

/** An address range: a CIDR block, or one address. */
export interface AddressRange {
  readonly network: string
  /** Length of the prefix in bits. */
  readonly bits: number
  readonly family: 4 | 6
}

/**
 * Parses `10.0.0.0/8`, `fd00::/8`, or one address; undefined for anything else, including blocks with bits set after
 * the prefix.
 */
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
  const groups = family === 4 ? network.split('.').map(Number) : groupsOf(network)
  const width = family === 4 ? 8 : 16
  return groups.some((group, at) => {
    const kept = Math.max(0, Math.min(width, bits - at * width))
    return (group & ((1 << (width - kept)) - 1)) !== 0
  })
}

/** The eight groups of an IPv6 address without a zone. */
export function groupsOf(address: string): number[] {
  // the URL parser gives an address in canonical form, without dotted quads
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const parse = (text: string | undefined): number[] =>
    text === undefined || text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [left, right] = [parse(head), parse(tail)]
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right]
}

/** A set of address ranges. It contains no host names. */
export class AddressRanges {
  readonly #list = new BlockList()
  /** The set has no ranges. */
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
