import { RefError } from './errors.ts'

/**
 * `sha256:` followed by 64 lower-case hex characters (spec ref.9). Only {@link parseDigest} and its siblings make one.
 */
export type Sha256Digest = string & { readonly __brand: 'Sha256Digest' }

const DIGEST = /^sha256:[0-9a-f]{64}$/
const HEX = /^[0-9a-f]{64}$/

/** True for exactly the canonical spelling: lower-case, no white space. */
export const isDigest = (text: unknown): text is Sha256Digest => typeof text === 'string' && DIGEST.test(text)

/** The digest, or undefined for anything but its canonical spelling ({@link isDigest}). */
export const tryParseDigest = (text: string): Sha256Digest | undefined => (isDigest(text) ? text : undefined)

/** {@link tryParseDigest}, also of the 64 hex characters alone, as people type them. */
export const tryParseTypedDigest = (text: string): Sha256Digest | undefined =>
  tryParseDigest(HEX.test(text) ? `sha256:${text}` : text)

/** @throws RefError `E_PARSE`, reason `digest-format`. */
export function parseDigest(text: string): Sha256Digest {
  if (isDigest(text)) return text
  throw new RefError('digest-format', 'a digest must be "sha256:" followed by 64 lower-case hex characters')
}

/** From 64 lower-case hex characters without the prefix. @throws RefError `E_PARSE`, reason `digest-format`. */
export function digestFromHex(hex: string): Sha256Digest {
  if (HEX.test(hex)) return `sha256:${hex}` as Sha256Digest
  throw new RefError('digest-format', 'a SHA-256 in hex must be 64 lower-case hex characters')
}

/** The 64 hex characters of a digest. */
export const digestHex = (digest: Sha256Digest): string => digest.slice(7)

/** An import of a thousand files converts thousands of digests: by a table, without a text for each digit. */
const HEX_OF = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The value of a lower-case hex digit. */
function nibbleAt(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code <= 0x39 ? code - 0x30 : code - 0x57
}

/** From the 32 raw bytes of a SHA-256. @throws RefError `E_PARSE`, reason `digest-format`. */
export function digestFromBytes(bytes: Uint8Array): Sha256Digest {
  if (bytes.length !== 32) throw new RefError('digest-format', 'a SHA-256 must be 32 bytes')
  let text = 'sha256:'
  for (let i = 0; i < bytes.length; i++) text += HEX_OF[bytes[i]!]
  return text as Sha256Digest
}

/** The 32 raw bytes of a digest. */
export function digestBytes(digest: Sha256Digest): Uint8Array {
  const bytes = new Uint8Array(32)
  for (let i = 0; i < 32; i++) bytes[i] = (nibbleAt(digest, 7 + 2 * i) << 4) | nibbleAt(digest, 8 + 2 * i)
  return bytes
}
