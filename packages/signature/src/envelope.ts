import { type KeyObject, verify } from 'node:crypto'
import { type Bundle, PAYLOAD_TYPE } from './bundle.ts'
import { given, SignatureError } from './errors.ts'
import { PREDICATE_0_2 } from './statement.ts'

const CURVES: Readonly<Record<string, string>> = { prime256v1: 'sha256', secp384r1: 'sha384', secp521r1: 'sha512' }

/** The hash that belongs to an elliptic-curve key; undefined for keys that signers of models do not use. */
export const hashOfKey = (key: KeyObject): string | undefined => CURVES[key.asymmetricKeyDetails?.namedCurve ?? '']

/** A key that models may be signed with. @throws SignatureError `input` */
export function signersKey(read: () => KeyObject, what: string): KeyObject {
  const key = given(read, `the ${what} cannot be read`)
  if (hashOfKey(key) !== undefined) return key
  throw new SignatureError('E_INVALID', 'input', 'the key is not on the curve P-256, P-384 or P-521')
}

/** The bytes that a DSSE signature covers (secure-systems-lab/dsse, protocol 1.0.0). */
export const signedBytes = (payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload])

/** Tells whether a key made the signature, in the present form or that of release 0.2 of the reference implementation. */
export function signatureTest({
  payload,
  signature
}: Pick<Bundle, 'payload' | 'signature'>): (key: KeyObject) => boolean {
  const signed = signedBytes(payload)
  const signed02 = payload.includes(PREDICATE_0_2) ? signedBytes02(payload) : undefined
  return (key) => {
    const hash = hashOfKey(key)
    if (hash === undefined) return false
    if (verify(hash, signed, key, signature)) return true
    return signed02 !== undefined && verify('sha256', signed02, key, signature)
  }
}

/** Release 0.2 signed the payload as Python prints bytes, after another mark, and always used SHA-256. */
function signedBytes02(payload: Buffer): Buffer {
  const quote = payload.includes("'") && !payload.includes('"') ? '"' : "'"
  const shown = Buffer.alloc(payload.length * MAX_SHOWN)
  const quoteCode = quote.charCodeAt(0)
  let length = 0
  for (const byte of payload) {
    if (byte === quoteCode) shown[length++] = BACKSLASH
    for (const each of SHOWN[byte]!) shown[length++] = each
  }
  const head = `DSSEV1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} b${quote}`
  return Buffer.concat([Buffer.from(head), shown.subarray(0, length), Buffer.from(quote)])
}

const BACKSLASH = 0x5c
const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

/** Each byte as Python prints it, apart from quotes. */
const SHOWN = Array.from({ length: 256 }, (_, byte) => Buffer.from(shownByte(byte)))
/** As many characters as `\xff`. */
const MAX_SHOWN = 4

function shownByte(byte: number): string {
  const character = String.fromCharCode(byte)
  const escaped = ESCAPES[character]
  if (escaped !== undefined) return escaped
  return byte >= 0x20 && byte < 0x7f ? character : `\\x${byte.toString(16).padStart(2, '0')}`
}
