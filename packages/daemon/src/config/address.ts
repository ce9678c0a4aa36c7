import { type PeerAddress, tryParseAddress, tryParseRange } from '@svc/internal-net'
import { ConfigError, StartError } from '../errors.ts'

/** `host:port`, IPv6 in brackets, port 0 to 65535; undefined for anything else. */
function tryParseHostPort(text: string): PeerAddress | undefined {
  // no peer has port 0, but a listener may be configured with it: the system then chooses one.
  const anyPort = /^(.+):0{1,5}$/.exec(text)
  if (anyPort === null) return tryParseAddress(text)
  const address = tryParseAddress(`${anyPort[1]}:1`)
  return address && { host: address.host, port: 0 }
}

/** @throws ConfigError naming the key. */
export function configuredAddress(text: string, key: string): PeerAddress {
  const address = tryParseHostPort(text)
  if (address !== undefined) return address
  throw new ConfigError(`${key} is "${text}", expected "host:port", e.g. "127.0.0.1:0"`)
}

/** Listens at a configured address. @throws ConfigError, StartError naming the key */
export async function listenAt<T>(text: string, key: string, listen: (address: PeerAddress) => Promise<T>): Promise<T> {
  const address = configuredAddress(text, key)
  try {
    return await listen(address)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    throw new StartError(`${key} = "${text}" cannot be used: ${(cause as Error).message}`, { cause })
  }
}

/** `[swarm] trusted`. @throws ConfigError naming the entry */
export function configuredRanges(texts: readonly string[]): readonly string[] {
  for (const text of texts)
    if (tryParseRange(text) === undefined)
      throw new ConfigError(
        `[swarm] trusted has ${JSON.stringify(text)}, expected an address range without bits beyond its prefix, e.g. "10.0.0.0/8" or "fd00::/8"`
      )
  return texts
}

/** `[swarm] zone`. @throws ConfigError */
export function configuredZone(zone: string | undefined): string | undefined {
  if (zone === undefined || /^[A-Za-z0-9._-]{1,64}$/.test(zone)) return zone
  throw new ConfigError(`[swarm] zone is ${JSON.stringify(zone)}, expected 1 to 64 letters, digits, ".", "_" and "-"`)
}
