import { lookup as dnsLookup } from 'node:dns'
import { lookup as dnsLookupAll } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from '@svc/internal-net'

/** True for IP addresses that an untrusted redirect must not reach: all that are not public. */
export function isInnerAddress(address: string): boolean {
  return isIP(address) !== 0 && !isPublicAddress(address)
}

/** A URL's host without the brackets of IPv6. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** True if the host alone shows that it is private: a literal address, or a `localhost` name (RFC 6761 §6.3). */
export function isInnerHost(host: string): boolean {
  return isInnerAddress(host) || /^(?:.*\.)?localhost\.?$/i.test(host)
}

/** Whether the host is, or resolves to, a private address; false if it cannot be resolved here. */
export async function resolvesToInner(host: string): Promise<boolean> {
  if (isInnerHost(host)) return true
  if (isIP(host) !== 0) return false
  try {
    return (await dnsLookupAll(host, { all: true })).some((found) => isInnerAddress(found.address))
  } catch {
    // Behind a proxy, names need not resolve here. A public endpoint is then the stricter assumption.
    return false
  }
}

export class InnerAddressError extends Error {
  override readonly name = 'InnerAddressError'
  readonly code = 'ERR_INNER_ADDRESS'
}

/**
 * A `lookup` for sockets that refuses names with any private address: the addresses checked are those that are
 * connected to.
 */
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
