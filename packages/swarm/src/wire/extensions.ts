import { Buffer } from 'node:buffer'
import { formatCompact, type PeerAddress, parseCompact } from '@svc/internal-net'
import { BencodeDictionary, type BencodeValue, decodeBencode, decodeBencodePrefix, encodeBencode } from '@svc/metainfo'
import { SwarmError } from '../errors.ts'
import { MAX_METADATA_BYTES, MAX_REQUEST_BYTES } from './messages.ts'

// Bodies of extended messages (BEP 10): handshake, ut_metadata (BEP 9), ut_pex (BEP 11).

/** The ids by which peers address our extensions. */
export const OUR_EXTENSIONS = { ut_metadata: 1, ut_pex: 2 } as const
export type ExtensionName = keyof typeof OUR_EXTENSIONS
/** Number of requests that this engine queues per peer (BEP 10 `reqq`). */
export const OUR_REQUEST_QUEUE = 2_000
export const METADATA_PIECE_BYTES = 16_384
const WIRE_BOUNDS = { maxBytes: 65_536, maxDepth: 8, maxTokens: 2_000, allowUnsorted: true }

export interface ExtendedHandshake {
  /** The peer's ids for the extensions that we support; 0 or absent: disabled. */
  readonly ids: ReadonlyMap<ExtensionName, number>
  readonly metadataBytes: number | undefined
  readonly requestQueue: number | undefined
  readonly listenPort: number | undefined
  readonly client: string | undefined
  /** Longest request that the peer accepts; 16 KiB unless it says more. */
  readonly maxRequestBytes: number
  /** The peer's zone label (`svc_zone`); undefined if it sent none. */
  readonly zone: string | undefined
}

const utf8 = new TextDecoder()
const integer = (value: BencodeValue | undefined, max: number): number | undefined =>
  typeof value === 'number' && value >= 0 && value <= max ? value : undefined

function dictionaryOf(value: BencodeValue): BencodeDictionary {
  if (value instanceof BencodeDictionary) return value
  throw new SwarmError('E_PROTOCOL', 'extended', 'an extended message is not a dictionary')
}

/** @throws SwarmError `E_BENCODE`, `E_PROTOCOL`. Out-of-range values count as absent. */
export function parseExtendedHandshake(payload: Uint8Array): ExtendedHandshake {
  const root = dictionaryOf(decodeBencode(payload, WIRE_BOUNDS))
  const ids = new Map<ExtensionName, number>()
  const names = root.get('m')
  if (names instanceof BencodeDictionary) {
    for (const name of Object.keys(OUR_EXTENSIONS) as ExtensionName[]) {
      const id = integer(names.get(name), 255)
      if (id !== undefined) ids.set(name, id)
    }
  }
  const client = root.get('v')
  const zone = root.get('svc_zone')
  // a peer that accepts more than we ask for accepts what we ask for.
  const maxRequest = Math.min(integer(root.get('svc_maxreq'), 2 ** 31 - 1) ?? 0, MAX_REQUEST_BYTES)
  return {
    ids,
    metadataBytes: integer(root.get('metadata_size'), MAX_METADATA_BYTES),
    requestQueue: integer(root.get('reqq'), 1_000_000),
    listenPort: integer(root.get('p'), 65_535),
    client: client instanceof Uint8Array ? utf8.decode(client.subarray(0, 64)).replace(/\p{C}/gu, '') : undefined,
    maxRequestBytes: maxRequest < 16_384 ? 16_384 : maxRequest & ~16_383,
    zone: zone instanceof Uint8Array && isZone(utf8.decode(zone)) ? utf8.decode(zone) : undefined
  }
}

/** True for the label of a zone: 1 to 64 letters, digits, `.`, `_` and `-`. */
export const isZone = (text: string): boolean => /^[A-Za-z0-9._-]{1,64}$/.test(text)

export interface OurExtendedHandshake {
  /** Size of the info dictionary; undefined while we do not have it. */
  readonly metadataBytes: number | undefined
  readonly listenPort: number | undefined
  readonly uploadOnly: boolean
  readonly pex: boolean
  /** Sent to peers in trusted ranges only. */
  readonly zone?: string | undefined
}

export function formatExtendedHandshake(options: OurExtendedHandshake): Uint8Array {
  return encodeBencode({
    m: { ut_metadata: OUR_EXTENSIONS.ut_metadata, ut_pex: options.pex ? OUR_EXTENSIONS.ut_pex : undefined },
    metadata_size: options.metadataBytes,
    p: options.listenPort,
    reqq: OUR_REQUEST_QUEUE,
    svc_maxreq: MAX_REQUEST_BYTES,
    svc_zone: options.zone,
    upload_only: options.uploadOnly ? 1 : undefined,
    v: 'svc-swarm 0.1'
  })
}

/** `data` carries the bytes of the metadata piece (a view). */
export type MetadataMessage =
  | { readonly kind: 'request' | 'reject'; readonly piece: number }
  | { readonly kind: 'data'; readonly piece: number; readonly totalBytes: number; readonly bytes: Uint8Array }

/** Undefined for a message type from a later protocol version. @throws SwarmError `E_BENCODE`, `E_PROTOCOL`. */
export function parseMetadataMessage(payload: Uint8Array): MetadataMessage | undefined {
  const { value, endOffset } = decodeBencodePrefix(payload, WIRE_BOUNDS)
  const root = dictionaryOf(value)
  const type = root.get('msg_type')
  const piece = integer(root.get('piece'), MAX_METADATA_BYTES / METADATA_PIECE_BYTES)
  if (piece === undefined) throw new SwarmError('E_PROTOCOL', 'metadata', 'a metadata message names no valid piece')
  if (type === 0) return { kind: 'request', piece }
  if (type === 2) return { kind: 'reject', piece }
  if (type !== 1) return undefined
  const totalBytes = integer(root.get('total_size'), MAX_METADATA_BYTES)
  if (totalBytes === undefined) throw new SwarmError('E_PROTOCOL', 'metadata', 'metadata without a valid size')
  return { kind: 'data', piece, totalBytes, bytes: payload.subarray(endOffset) }
}

export const formatMetadataRequest = (piece: number): Uint8Array => encodeBencode({ msg_type: 0, piece })
export const formatMetadataReject = (piece: number): Uint8Array => encodeBencode({ msg_type: 2, piece })
export const formatMetadataData = (piece: number, info: Uint8Array): Uint8Array =>
  Buffer.concat([
    encodeBencode({ msg_type: 1, piece, total_size: info.length }),
    info.subarray(piece * METADATA_PIECE_BYTES, (piece + 1) * METADATA_PIECE_BYTES)
  ])

/** Limit of addresses in one peer exchange message, in both directions (BEP 11). */
export const MAX_PEX_PEERS = 50

/** The added peers, at most 50. @throws SwarmError `E_BENCODE`, `E_PROTOCOL`. */
export function parsePex(payload: Uint8Array): readonly PeerAddress[] {
  const root = dictionaryOf(decodeBencode(payload, WIRE_BOUNDS))
  const added = root.get('added')
  const added6 = root.get('added6')
  return [
    ...(added instanceof Uint8Array ? parseCompact(added, 4) : []),
    ...(added6 instanceof Uint8Array ? parseCompact(added6, 16) : [])
  ].slice(0, MAX_PEX_PEERS)
}

/** IPv4 and IPv6 (`added6`), at most 50 of either list. */
export function formatPex(added: readonly PeerAddress[], dropped: readonly PeerAddress[]): Uint8Array {
  const [come, gone] = [added.slice(0, MAX_PEX_PEERS), dropped.slice(0, MAX_PEX_PEERS)]
  const [four, six] = [formatCompact(come, 4), formatCompact(come, 16)]
  return encodeBencode({
    added: four,
    'added.f': new Uint8Array(four.length / 6),
    added6: six,
    'added6.f': new Uint8Array(six.length / 18),
    dropped: formatCompact(gone, 4),
    dropped6: formatCompact(gone, 16)
  })
}
