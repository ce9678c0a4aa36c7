import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { followRedirects, headerOf, RedirectError, type Redirecting } from '@svc/internal-http'
import {
  DialGuard,
  type DialPolicy,
  isHost,
  isPort,
  isPublicAddress,
  type PeerAddress,
  parseCompact,
  policyOfAddresses
} from '@svc/internal-net'
import { BencodeDictionary, type BencodeValue, decodeBencode } from '@svc/metainfo'
import { type Announce, type Announced, MAX_PEERS, PEERS_WANTED, printableReason } from './announce.ts'
import { type TrackerUrl, tryParseTrackerUrl } from './tracker-url.ts'

/** 200 peers as dictionaries take some 20 KiB. */
const MAX_ANSWER_BYTES = 256 << 10
const MAX_HEADER_BYTES = 16_384
const MAX_REDIRECTS = 3

/**
 * Announces over HTTP (BEP 3, 7, 23). Follows at most three redirects: never from https to http, and only where the
 * address that the tracker answered from lets it name one. The answer is limited in size and parsed strictly.
 *
 * @param policy on whose word the tracker is contacted
 * @throws Error with a message for people.
 */
export async function announceHttp(
  tracker: TrackerUrl,
  announce: Announce,
  policy: DialPolicy,
  signal: AbortSignal
): Promise<Announced> {
  const query = queryOf(announce)
  let mayDial = policy
  const ask = async (url: URL): Promise<TrackerAnswer> => {
    const target = url === tracker.url ? tracker : redirected(url, query)
    const answer = new TrackerAnswer(await get(target, query, mayDial, signal))
    mayDial = policyOfAddresses([answer.address])
    return answer
  }
  const { response, status, address } = await followRedirects(tracker.url, MAX_REDIRECTS, ask).then(
    (answer) => answer as TrackerAnswer,
    (error: unknown) => {
      throw error instanceof RedirectError ? new Error(`it ${error.message}`, { cause: error }) : error
    }
  )
  if (status === 200) return { ...parseAnnounced(await body(response)), byPrivate: !isPublicAddress(address) }
  response.destroy()
  throw new Error(`it responded with status ${status}`)
}

class TrackerAnswer implements Redirecting {
  readonly response: IncomingMessage
  readonly status: number
  /** Who answered. */
  readonly address: string

  constructor(response: IncomingMessage) {
    this.response = response
    this.status = response.statusCode ?? 0
    this.address = response.socket.remoteAddress ?? ''
  }

  header(name: string): string | undefined {
    return headerOf(this.response.headers, name)
  }

  async discard(): Promise<void> {
    this.destroy()
  }

  destroy(): void {
    this.response.destroy()
  }
}

function redirected(url: URL, query: string): TrackerUrl {
  const to = tryParseTrackerUrl(url.href)
  if (to === undefined) throw new Error('it redirects to a URL that is not a tracker')
  // trackers may or may not repeat our query, which is added again.
  const { searchParams } = to.url
  for (const key of new URLSearchParams(query).keys()) if (searchParams.has(key)) searchParams.delete(key)
  return to
}

/** By Node's own client (decision 0062). */
async function get(
  { url, host }: TrackerUrl,
  query: string,
  policy: DialPolicy,
  signal: AbortSignal
): Promise<IncomingMessage> {
  const guard = new DialGuard(policy)
  guard.check(host)
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(
      `${url.href}${url.search === '' ? '?' : '&'}${query}`,
      {
        agent: false,
        headers: { 'accept-encoding': 'identity', 'user-agent': 'svc' },
        lookup: guard.lookup,
        maxHeaderSize: MAX_HEADER_BYTES,
        signal
      }
    )
    request.on('response', resolve)
    request.on('error', reject)
    request.end()
  })
}

async function body(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) throw new Error(`its answer has more than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const percent = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex').replace(/../g, '%$&')

function queryOf({ infohash, peerId, port, uploaded, downloaded, left, event, trackerId }: Announce): string {
  const fields = [
    `info_hash=${percent(infohash)}`,
    `peer_id=${percent(peerId)}`,
    `port=${port}`,
    `uploaded=${uploaded}`,
    `downloaded=${downloaded}`,
    `left=${left}`,
    'compact=1',
    `numwant=${event === 'stopped' ? 0 : PEERS_WANTED}`
  ]
  if (event !== undefined) fields.push(`event=${event}`)
  if (trackerId !== undefined) fields.push(`trackerid=${percent(trackerId)}`)
  return fields.join('&')
}

/** @throws Error when it is not a valid answer, or reports a failure. */
function parseAnnounced(answer: Uint8Array): Omit<Announced, 'byPrivate'> {
  let root: BencodeValue
  try {
    root = decodeBencode(answer, {
      maxBytes: MAX_ANSWER_BYTES,
      maxDepth: 4,
      maxTokens: 16 * MAX_PEERS,
      allowTrailing: true,
      allowUnsorted: true
    })
  } catch (cause) {
    throw new Error('its answer is not valid bencoding', { cause })
  }
  if (!(root instanceof BencodeDictionary)) throw new Error('its answer is not a dictionary')
  const failure = text(root.get('failure reason'))
  if (failure !== undefined) throw new Error(`it refuses: ${failure}`)
  const interval = root.get('interval') ?? root.get('min interval')
  const trackerId = root.get('tracker id')
  return {
    peers: [...peersOf(root.get('peers'), 4), ...peersOf(root.get('peers6'), 16)].slice(0, MAX_PEERS),
    intervalMs: typeof interval === 'number' ? interval * 1_000 : undefined,
    trackerId: trackerId instanceof Uint8Array && trackerId.length <= 256 ? trackerId : undefined,
    warning: text(root.get('warning message'))
  }
}

function peersOf(value: BencodeValue | undefined, addressBytes: 4 | 16): PeerAddress[] {
  if (value instanceof Uint8Array) return parseCompact(value, addressBytes)
  if (!Array.isArray(value)) return []
  return (value as readonly BencodeValue[]).flatMap((peer) => {
    if (!(peer instanceof BencodeDictionary)) return []
    const host = text(peer.get('ip'))
    const port = peer.get('port')
    if (host === undefined || typeof port !== 'number' || !isPort(port)) return []
    // addresses only: resolving a name would mean a lookup on behalf of a stranger.
    return isIP(host) !== 0 && isHost(host) ? [{ host, port }] : []
  })
}

const text = (value: BencodeValue | undefined): string | undefined =>
  value instanceof Uint8Array ? printableReason(new TextDecoder().decode(value.subarray(0, 1_024))) : undefined
