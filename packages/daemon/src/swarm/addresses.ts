import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { tryParseAddress } from '@svc/internal-net'
import { ConfigError } from '../errors.ts'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** `host:port`, IPv6 in brackets, port 0 to 65535; undefined for anything else. */
function tryParseHostPort(text: string): HostPort | undefined {
  // Port 0 is no peer's, but it is what a listener may be configured with: the system chooses.
  const anyPort = /^(.+):0{1,5}$/.exec(text)
  if (anyPort === null) return tryParseAddress(text)
  const address = tryParseAddress(`${anyPort[1]}:1`)
  return address && { host: address.host, port: 0 }
}

/** @throws ConfigError naming the key. */
export function configuredAddress(text: string, key: string): HostPort {
  const address = tryParseHostPort(text)
  if (address !== undefined) return address
  throw new ConfigError(`${key} is "${text}", expected "host:port", e.g. "127.0.0.1:0"`)
}

export const formatHostPort = ({ host, port }: HostPort): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** The addresses under which a listener on `host` can be reached; a wildcard stands for those of the interfaces. */
export function reachableHosts(host: string): string[] {
  if (host !== '0.0.0.0' && host !== '::') return [host]
  const found = interfaceAddresses()
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
  return found.length > 0 ? found : ['127.0.0.1']
}

/** Empty where the system refuses to list them, as a sandbox without netlink sockets does: sharing goes on without. */
function interfaceAddresses(): (NetworkInterfaceInfo[] | undefined)[] {
  try {
    return Object.values(networkInterfaces())
  } catch {
    return []
  }
}
