import { BencodeDictionary, type BencodeValue, decodeBencode, encodeBencode, RawBencode } from './bencode.ts'
import { parseInfo } from './info-dictionary.ts'
import { type CheckedPieceLayers, checkPieceLayers, encodePieceLayers, type PieceLayers } from './piece-layers.ts'
import { METAINFO_BOUNDS, metainfoError, type TorrentInfo } from './torrent-info.ts'

const MAX_HINTS = 1_000
const MAX_URL_BYTES = 2_048

/** A `.torrent` file (BEP 3, 12, 19, 52). */
export interface Metainfo {
  readonly info: TorrentInfo
  readonly pieceLayers: CheckedPieceLayers
  /** Tiers of tracker URLs (BEP 12); untrusted. */
  readonly trackers: readonly (readonly string[])[]
  /** Webseed URLs (BEP 19); untrusted. */
  readonly webseeds: readonly string[]
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Undefined unless the value is a URL with one of the schemes: unusable hints are dropped. */
function usableUrl(value: BencodeValue, schemes: readonly string[]): string | undefined {
  if (!(value instanceof Uint8Array)) throw metainfoError('hints', 'a tracker or webseed is not a string')
  if (value.length > MAX_URL_BYTES) throw metainfoError('hints', `a URL has more than ${MAX_URL_BYTES} bytes`)
  try {
    const text = utf8.decode(value)
    return schemes.includes(new URL(text).protocol) ? text : undefined
  } catch {
    return undefined
  }
}

function urlsOf(value: BencodeValue, schemes: readonly string[]): string[] {
  const list = Array.isArray(value) ? (value as readonly BencodeValue[]) : [value]
  if (list.length > MAX_HINTS) throw metainfoError('hints', `more than ${MAX_HINTS} trackers or webseeds`)
  return [...new Set(list.map((item) => usableUrl(item, schemes)).filter((url) => url !== undefined))]
}

const TRACKER_SCHEMES = ['http:', 'https:', 'udp:', 'ws:', 'wss:']
const WEBSEED_SCHEMES = ['http:', 'https:']

function trackersOf(root: BencodeDictionary): string[][] {
  const listed = root.get('announce-list') ?? []
  if (!Array.isArray(listed)) throw metainfoError('hints', '"announce-list" is not a list')
  if (listed.length > MAX_HINTS) throw metainfoError('hints', `more than ${MAX_HINTS} tracker tiers`)
  const usableOf = (tiers: readonly BencodeValue[]): string[][] =>
    tiers.map((tier) => urlsOf(tier, TRACKER_SCHEMES)).filter((urls) => urls.length > 0)
  const usable = usableOf(listed)
  // BEP 12: "announce" is ignored when there is a list.
  return usable.length > 0 ? usable : usableOf([root.get('announce') ?? []])
}

/**
 * Parses the bytes of an untrusted `.torrent` file, v2 or hybrid, strictly; newlines after the root value are
 * tolerated. Piece layers are verified against their roots; absent ones are listed in `pieceLayers.missing`. At most
 * 10,000,000 bytes; computes two hashes per piece. Byte arrays are views into `bytes`.
 * @throws MetainfoError `E_METAINFO` with a `MetainfoReason`, `E_BENCODE`.
 */
export function parseTorrent(bytes: Uint8Array): Metainfo {
  if (bytes.length > METAINFO_BOUNDS.torrentBytes)
    throw metainfoError('too-large', `a .torrent must have at most ${METAINFO_BOUNDS.torrentBytes} bytes`)
  const root = decodeBencode(bytes, { allowTrailing: true })
  if (!(root instanceof BencodeDictionary)) throw metainfoError('not-a-dictionary', 'a .torrent must be a dictionary')
  const infoBytes = root.span('info')
  if (infoBytes === undefined) throw metainfoError('info-missing', 'the .torrent has no info dictionary')
  const info = parseInfo(infoBytes)
  const layers = root.get('piece layers') ?? new BencodeDictionary(bytes)
  const webseeds = root.get('url-list')
  return {
    info,
    pieceLayers: checkPieceLayers(layers, info),
    trackers: trackersOf(root),
    webseeds: webseeds === undefined ? [] : urlsOf(webseeds, WEBSEED_SCHEMES)
  }
}

/** The fields of a `.torrent` file beside its info dictionary and piece layers. */
export interface MetainfoOptions {
  /** Tiers of tracker URLs. */
  readonly trackers?: readonly (readonly string[])[]
  readonly webseeds?: readonly string[]
  readonly createdBy?: string
}

/**
 * The bytes of a `.torrent` file: the given info dictionary unchanged, all its piece layers, and the given hints.
 * @throws MetainfoError `E_METAINFO` as `encodePieceLayers` does.
 */
export function encodeTorrent(info: TorrentInfo, layers: PieceLayers, options: MetainfoOptions = {}): Uint8Array {
  const tiers = (options.trackers ?? []).filter((tier) => tier.length > 0)
  const webseeds = options.webseeds ?? []
  return encodeBencode({
    announce: tiers[0]?.[0],
    'announce-list': tiers.flat().length > 1 ? tiers : undefined,
    'created by': options.createdBy,
    info: new RawBencode(info.infoBytes),
    'piece layers': new RawBencode(encodePieceLayers(layers, info)),
    'url-list': webseeds.length > 0 ? webseeds : undefined
  })
}
