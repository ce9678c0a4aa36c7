import { tryFromHex } from '@svc/metainfo'

// Local service discovery (BEP 14): an announce is one datagram in the form of an HTTP request.

export interface LsdAnnounce {
  readonly port: number
  /** 40 lower-case hex characters each: truncated v2 infohashes. */
  readonly infohashes: readonly string[]
  /** Chosen by the sender, to recognize its own datagrams. */
  readonly cookie: string | undefined
}

export const LSD_GROUPS = { 4: '239.192.152.143', 6: 'ff15::efc0:988f' } as const
export const LSD_PORT = 6771
/** BEP 14: a datagram should not be longer than this. */
const MAX_BYTES = 1_400
const LINE_BYTES = '\r\nInfohash: '.length + 40

/** Number of infohashes that fit in one datagram with a cookie of 16 characters. */
export const MAX_LSD_INFOHASHES = Math.floor((MAX_BYTES - 140) / LINE_BYTES)

export const formatLsd = ({ port, infohashes, cookie }: LsdAnnounce, family: 4 | 6): string =>
  [
    'BT-SEARCH * HTTP/1.1',
    `Host: ${family === 4 ? LSD_GROUPS[4] : `[${LSD_GROUPS[6]}]`}:${LSD_PORT}`,
    `Port: ${port}`,
    ...infohashes.slice(0, MAX_LSD_INFOHASHES).map((infohash) => `Infohash: ${infohash}`),
    ...(cookie === undefined ? [] : [`cookie: ${cookie}`]),
    '',
    '',
    ''
  ].join('\r\n')

/** Parses an untrusted datagram; undefined unless it is an announce. Invalid infohashes are skipped. */
export function tryParseLsd(datagram: Uint8Array): LsdAnnounce | undefined {
  if (datagram.length > MAX_BYTES) return undefined
  const [first, ...lines] = new TextDecoder().decode(datagram).split('\r\n')
  if (first !== 'BT-SEARCH * HTTP/1.1') return undefined
  let port: number | undefined
  let cookie: string | undefined
  const infohashes: string[] = []
  for (const line of lines) {
    const [, name = '', value = ''] = /^([A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    const key = name.toLowerCase()
    if (key === 'port' && /^\d{1,5}$/.test(value)) port = Number(value)
    else if (key === 'cookie') cookie = value.slice(0, 64)
    else if (key === 'infohash' && tryFromHex(value)?.length === 20) infohashes.push(value.toLowerCase())
  }
  if (port === undefined || port < 1 || port > 65_535 || infohashes.length === 0) return undefined
  return { port, infohashes, cookie }
}
