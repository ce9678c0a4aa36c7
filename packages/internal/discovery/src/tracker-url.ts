import { isHost, isPort } from '@svc/internal-net'

const MAX_CHARACTERS = 2_048
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'udp:': 80 }

/** Where a tracker is: `http`, `https` or `udp`, a host and a port that can be connected to, no credentials. */
export interface TrackerUrl {
  readonly url: URL
  /** Without brackets. */
  readonly host: string
  readonly port: number
}

/** Undefined for what no announce can be sent to. */
export function tryParseTrackerUrl(text: string): TrackerUrl | undefined {
  if (text.length > MAX_CHARACTERS) return undefined
  const url = URL.parse(text)
  if (url === null || !Object.hasOwn(DEFAULT_PORTS, url.protocol) || url.username + url.password !== '')
    return undefined
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = url.port === '' ? DEFAULT_PORTS[url.protocol]! : Number(url.port)
  if (!isHost(host) || !isPort(port)) return undefined
  url.hash = ''
  return { url, host, port }
}
