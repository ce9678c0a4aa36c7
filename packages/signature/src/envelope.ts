import { type KeyObject, verify } from 'node:crypto'
import { type Bundle, PAYLOAD_TYPE } from './bundle.ts'
import { given, SignatureError } from './errors.ts'

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

/** Whether a key made the signature, in the present form or that of release 0.2 of the reference implementation. */
export function isSignedBy(key: KeyObject, { payload, signature }: Pick<Bundle, 'payload' | 'signature'>): boolean {
  const hash = hashOfKey(key)
  if (hash === undefined) return false
  return verify(hash, signedBytes(payload), key, signature) || verify('sha256', signedBytes02(payload), key, signature)
}

/** Release 0.2 signed the payload as Python prints bytes, after another mark, and always used SHA-256. */
function signedBytes02(payload: Buffer): Buffer {
  const quote = payload.includes("'") && !payload.includes('"') ? '"' : "'"
  let shown = ''
  for (const byte of payload) {
    const character = String.fromCharCode(byte)
    if (character === quote || character === '\\') shown += `\\${character}`
    else if (byte >= 0x20 && byte < 0x7f) shown += character
    else shown += ESCAPES[character] ?? `\\x${byte.toString(16).padStart(2, '0')}`
  }
  return Buffer.from(`DSSEV1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} b${quote}${shown}${quote}`)
}

const ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }
