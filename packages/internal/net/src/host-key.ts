import { isIPv6 } from 'node:net'
import { groupsOf } from './ranges.ts'

/**
 * What counts as one host where hosts are counted or banned: an IPv4 address, also in its IPv6 form, or the first 64 bits of an
 * IPv6 address, which usually belong to one customer. Names are their own key, whatever their case.
 */
export function hostKey(host: string): string {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  return isIPv6(plain)
    ? groupsOf(plain)
        .slice(0, 4)
        .map((group) => group.toString(16))
        .join(':')
    : plain.toLowerCase()
}
