import { isIPv6 } from 'node:net'
import { parseIPv6 } from './address.ts'

/** An IPv4 address that a dual-stack socket reports as IPv6 (`::ffff:192.0.2.1`) as IPv4; others are unchanged. */
export const plainAddress = (host: string): string => host.replace(/^::ffff:(?=\d+\.)/i, '')

/**
 * What counts as one host where hosts are counted or banned: an IPv4 address, also in its IPv6 form, or the first 64 bits of an
 * IPv6 address, which usually belong to one customer. Names are their own key, whatever their case.
 */
export function hostKey(host: string): string {
  const plain = plainAddress(host).replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain.toLowerCase()
  const groups = parseIPv6(plain).parts.slice(0, 4)
  return groups.map((group) => group.toString(16)).join(':')
}
