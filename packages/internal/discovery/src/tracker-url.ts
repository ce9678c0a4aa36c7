import { isHost, isPort } from '@svc/internal-net'

const MAX_CHARACTERS = 2_048
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'udp:': 80 }

/** A tracker's URL: `http`, `https` or `udp`, with a valid host and port, without credentials. */
export interface TrackerUrl {
  readonly url: URL
  /** Without brackets. */
  readonly host: string
  readonly port: number
}

/** Undefined if the text is not the URL of a tracker. */
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
