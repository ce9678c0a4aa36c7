import { MetainfoError } from './errors.ts'

const HEX = /^(?:[0-9a-f]{2})*$/
const BTMH = /^btmh:1220([0-9a-f]{64})$/

const HEX_DIGITS = Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))
/** Few enough to be the arguments of one call. */
const HEX_BYTES_AT_ONCE = 1024

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  if (bytes.length <= HEX_BYTES_AT_ONCE) return hexOf(bytes)
  let hex = ''
  for (let at = 0; at < bytes.length; at += HEX_BYTES_AT_ONCE) hex += hexOf(bytes.subarray(at, at + HEX_BYTES_AT_ONCE))
  return hex
}

/** In one call: a string that is put together from pieces keeps all of them alive, up to 60 for each key of a map. */
function hexOf(bytes: Uint8Array): string {
  const codes: number[] = []
  for (let i = 0; i < bytes.length; i++) codes.push(HEX_DIGITS[bytes[i]! >> 4]!, HEX_DIGITS[bytes[i]! & 15]!)
  return String.fromCharCode(...codes)
}

/** Inverse of {@link toHex}; undefined unless `hex` is an even number of lower-case hex characters. */
export function tryFromHex(hex: string): Uint8Array | undefined {
  if (!HEX.test(hex)) return undefined
  const bytes = new Uint8Array(hex.length / 2)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)
  return bytes
}

/** `btmh:1220<64 hex>`: the multihash spelling of a 32-byte v2 infohash (BEP 52, spec job.7, doc.15). */
export function formatInfohash(infohash: Uint8Array): string {
  if (infohash.length !== 32) throw new MetainfoError('E_METAINFO', 'infohash', 'a v2 infohash must have 32 bytes')
  return `btmh:1220${toHex(infohash)}`
}

/** The 32 bytes of `btmh:1220<64 lower-case hex>`; undefined for anything else. */
export function tryParseInfohash(text: string): Uint8Array | undefined {
  const match = BTMH.exec(text)
  return match === null ? undefined : tryFromHex(match[1]!)
}

/** As {@link tryParseInfohash}. @throws MetainfoError `E_METAINFO`, reason `infohash`. */
export function parseInfohash(text: string): Uint8Array {
  const infohash = tryParseInfohash(text)
  if (infohash !== undefined) return infohash
  throw new MetainfoError(
    'E_METAINFO',
    'infohash',
    'a v2 infohash must be "btmh:1220" followed by 64 lower-case hex characters'
  )
}

/** The 20 bytes that stand for a v2 infohash in handshakes, tracker requests, the DHT and peer exchange (BEP 52). */
export const truncateInfohash = (infohash: Uint8Array): Uint8Array => infohash.slice(0, 20)
