import { networkInterfaces } from 'node:os'
import { ConfigError, DaemonError } from '../errors.ts'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** `host:port`, IPv6 in brackets, port 0 to 65535; undefined for anything else. */
export function tryParseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%]+)\]|([^:[\]\s/]{1,253})):(\d{1,5})$/.exec(text)
  if (match === null) return undefined
  const port = Number(match[3])
  return port <= 65_535 ? { host: (match[1] ?? match[2])!, port } : undefined
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
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
  return found.length > 0 ? found : ['127.0.0.1']
}

const MAX_HINTS = 100
const MAX_HINT_CHARACTERS = 2_048

/** A list of hints of a request body. @throws DaemonError `E_BAD_REQUEST` naming the field. */
export function checkedHints(
  values: readonly string[],
  field: string,
  expected: string,
  isHint: (value: string) => boolean
): readonly string[] {
  if (values.length > MAX_HINTS)
    throw new DaemonError('E_BAD_REQUEST', `the field "${field}" has more than ${MAX_HINTS} entries`)
  for (const value of values) {
    if (value.length > MAX_HINT_CHARACTERS || !isHint(value)) {
      throw new DaemonError(
        'E_BAD_REQUEST',
        `the field "${field}" holds ${JSON.stringify(value.slice(0, 100))}, expected ${expected}`
      )
    }
  }
  return [...new Set(values)]
}

export const isHttpUrl = (text: string): boolean => /^https?:\/\/[^\s/]/i.test(text) && URL.canParse(text)

export const isTrackerUrl = (text: string): boolean => /^(https?|udp):\/\/[^\s/]/i.test(text) && URL.canParse(text)

export const isPeerAddress = (text: string): boolean => {
  const address = tryParseHostPort(text)
  return address !== undefined && address.port > 0
}
