import { MetainfoError } from './errors.ts'
import { toHex, tryFromHex } from './infohash.ts'

const MAX_MAGNET_CHARACTERS = 65_536
const MAX_HINTS = 1_000
const MAX_HINT_CHARACTERS = 2_048

/** Why a magnet link was refused (code `E_MAGNET`). */
export type MagnetReason =
  | 'too-long'
  | 'scheme'
  | 'encoding'
  | 'no-topic'
  | 'topic-format'
  | 'topic-conflict'
  | 'v1-only'
  | 'too-many-hints'
  | 'hint-too-long'

/** The parameters of a magnet link (BEP 9, BEP 52), for v1 and v2. Hints are untrusted. */
export interface MagnetTopics {
  /** 32 bytes, from `urn:btmh:1220…`. */
  readonly infohash: Uint8Array | undefined
  /** 20 bytes, from `urn:btih:…` (40 hex or 32 base32 characters). */
  readonly infohashV1: Uint8Array | undefined
  /** `dn` */
  readonly name: string | undefined
  /** `tr`, in order, without duplicates. */
  readonly trackers: readonly string[]
  /** `ws` */
  readonly webseeds: readonly string[]
  /** `x.pe`: `host:port` */
  readonly peers: readonly string[]
}

/** A magnet link of a v2 or hybrid torrent. */
export interface Magnet extends MagnetTopics {
  readonly infohash: Uint8Array
}

const fail = (reason: MagnetReason, message: string): MetainfoError => new MetainfoError('E_MAGNET', reason, message)

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

function fromBase32(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length * 5) >>> 3)
  let bits = 0
  let held = 0
  let at = 0
  for (const character of text) {
    held = ((held << 5) | BASE32.indexOf(character)) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = (held >>> bits) & 0xff
    }
  }
  return bytes
}

function parseV2Topic(value: string): Uint8Array {
  const hash = value.startsWith('1220') && value.length === 68 ? tryFromHex(value.slice(4).toLowerCase()) : undefined
  if (hash === undefined)
    throw fail('topic-format', 'the topic urn:btmh: must be a SHA-256 multihash: "1220" and 64 hex characters')
  return hash
}

function parseV1Topic(value: string): Uint8Array {
  const text = value.toLowerCase()
  if (/^[a-z2-7]{32}$/.test(text)) return fromBase32(text)
  const hash = text.length === 40 ? tryFromHex(text) : undefined
  if (hash === undefined) throw fail('topic-format', 'the topic urn:btih: must be 40 hex or 32 base32 characters')
  return hash
}

type Key = 'xt' | 'dn' | 'tr' | 'ws' | 'x.pe'
const isKey = (key: string): key is Key => /^(?:xt|dn|tr|ws|x\.pe)$/.test(key)

/** The parameters that are known, decoded. */
function* parametersOf(text: string): Generator<readonly [Key, string]> {
  for (const parameter of text.slice(8).split('&')) {
    const equals = parameter.indexOf('=')
    if (equals < 0) continue
    const key = parameter
      .slice(0, equals)
      .toLowerCase()
      .replace(/\.\d{1,4}$/, '')
    if (!isKey(key)) continue
    try {
      yield [key, decodeURIComponent(parameter.slice(equals + 1))]
    } catch (error) {
      if (!(error instanceof URIError)) throw error
      throw fail('encoding', `the parameter ${key} is not percent-encoded UTF-8`)
    }
  }
}

function requireHint(value: string, count: number): void {
  if (count > MAX_HINTS) throw fail('too-many-hints', `a magnet link must have at most ${MAX_HINTS} hints`)
  if (value.length > MAX_HINT_CHARACTERS)
    throw fail('hint-too-long', `a hint must have at most ${MAX_HINT_CHARACTERS} characters`)
}

/**
 * Reads a magnet link with v1 topics, v2 topics or both. Parameters are percent-decoded strictly, `+` is not a space;
 * numbered forms (`xt.1`, `tr.2`) count; unknown parameters and topics of other networks are ignored.
 * At most 65,536 characters and 1,000 hints of at most 2,048 characters each.
 * @throws MetainfoError `E_MAGNET` with a {@link MagnetReason}.
 */
export function parseMagnetTopics(text: string): MagnetTopics {
  if (text.length > MAX_MAGNET_CHARACTERS)
    throw fail('too-long', `a magnet link must have at most ${MAX_MAGNET_CHARACTERS} characters`)
  if (!/^magnet:\?/i.test(text)) throw fail('scheme', 'a magnet link must begin with "magnet:?"')
  let infohash: Uint8Array | undefined
  let infohashV1: Uint8Array | undefined
  let name: string | undefined
  const hints = { tr: new Set<string>(), ws: new Set<string>(), 'x.pe': new Set<string>() }
  let hintCount = 0
  for (const [key, value] of parametersOf(text)) {
    if (key === 'dn') name ??= value
    else if (key === 'xt') {
      const topic = /^urn:(btmh|btih):(.*)$/is.exec(value)
      if (topic === null) continue
      const isV2 = topic[1]!.toLowerCase() === 'btmh'
      const hash = isV2 ? parseV2Topic(topic[2]!) : parseV1Topic(topic[2]!)
      const known = isV2 ? infohash : infohashV1
      if (known !== undefined && toHex(known) !== toHex(hash))
        throw fail('topic-conflict', 'the magnet link names two torrents')
      if (isV2) infohash = hash
      else infohashV1 = hash
    } else if (value !== '') {
      requireHint(value, ++hintCount)
      hints[key].add(value)
    }
  }
  if (infohash === undefined && infohashV1 === undefined)
    throw fail('no-topic', 'the magnet link has no BitTorrent topic (xt=urn:btmh:1220…)')
  return { infohash, infohashV1, name, trackers: [...hints.tr], webseeds: [...hints.ws], peers: [...hints['x.pe']] }
}

/**
 * Like {@link parseMagnetTopics}, but requires a v2 topic.
 * @throws MetainfoError `E_MAGNET`, also reason `v1-only` for a link without a `urn:btmh` topic.
 */
export function parseMagnet(text: string): Magnet {
  const magnet = parseMagnetTopics(text)
  if (magnet.infohash === undefined)
    throw fail('v1-only', 'the magnet link is BitTorrent v1 only: one with xt=urn:btmh:1220… is needed')
  return { ...magnet, infohash: magnet.infohash }
}

/** The inverse of {@link parseMagnetTopics}. @throws MetainfoError `E_MAGNET`: `no-topic`, `topic-format`, `encoding`. */
export function formatMagnet(magnet: Partial<MagnetTopics>): string {
  const { infohash, infohashV1 } = magnet
  if (infohash === undefined && infohashV1 === undefined) throw fail('no-topic', 'a magnet link needs an infohash')
  if ((infohash?.length ?? 32) !== 32 || (infohashV1?.length ?? 20) !== 20)
    throw fail('topic-format', 'a v2 infohash must have 32 bytes, a v1 infohash 20')
  const encode = (value: string): string => {
    if (!value.isWellFormed()) throw fail('encoding', 'a parameter contains a lone surrogate')
    return encodeURIComponent(value)
  }
  const parameters: string[] = []
  if (infohash !== undefined) parameters.push(`xt=urn:btmh:1220${toHex(infohash)}`)
  if (infohashV1 !== undefined) parameters.push(`xt=urn:btih:${toHex(infohashV1)}`)
  if (magnet.name !== undefined) parameters.push(`dn=${encode(magnet.name)}`)
  for (const url of magnet.trackers ?? []) parameters.push(`tr=${encode(url)}`)
  for (const url of magnet.webseeds ?? []) parameters.push(`ws=${encode(url)}`)
  // a query may hold a literal colon (RFC 3986 §3.4), and libtorrent does not decode an escaped one here.
  for (const peer of magnet.peers ?? []) parameters.push(`x.pe=${encode(peer).replaceAll('%3A', ':')}`)
  return `magnet:?${parameters.join('&')}`
}
