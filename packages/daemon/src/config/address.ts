import { type PeerAddress, tryParseAddress } from '@svc/internal-net'
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
