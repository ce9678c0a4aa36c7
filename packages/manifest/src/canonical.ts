import { excessText, jsonExcess } from '@svc/internal-http/json'
import { sha256 } from '@svc/metainfo'
import { digestFromBytes } from '@svc/ref'
import canonicalize from 'canonicalize'
import { ManifestError, type ManifestErrorCode } from './errors.ts'
import type { Sealed } from './types.ts'

/** Largest document that is read or sealed (spec doc.1). */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
/** Enough for 15,000 files, which is what 4 MiB hold. Of a document: in what it costs to read, keys count most. */
const BOUNDS = { depth: 64, values: 200_000, keys: 4_096 }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const toUtf8 = new TextEncoder()

function requireScalar(value: unknown, code: ManifestErrorCode): true {
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)) return true
  const what =
    typeof value === 'number'
      ? `${value} is not a safe integer, and documents can contain no other number`
      : `a document cannot contain ${value === null ? 'null' : typeof value}`
  throw new ManifestError(code, 'value', what)
}

/**
 * A document holds only strings, booleans, safe integers, arrays and plain objects.
 * @returns whether the keys of each object are in the order of RFC 8785, by UTF-16 code units
 */
function requirePlain(value: unknown, code: ManifestErrorCode, depth = 1): boolean {
  if (typeof value !== 'object' || value === null) return requireScalar(value, code)
  // this also ends a cycle.
  if (depth > BOUNDS.depth) throw new ManifestError(code, 'depth', `nested deeper than ${BOUNDS.depth}`)
  let isSorted = true
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) isSorted = requirePlain(value[i], code, depth + 1) && isSorted
    return isSorted
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    throw new ManifestError(code, 'value', 'a document can contain only plain objects and arrays')
  let previous: string | undefined
  for (const key of Object.keys(value)) {
    isSorted = requirePlain((value as Record<string, unknown>)[key], code, depth + 1) && isSorted
    if (previous !== undefined && previous > key) isSorted = false
    previous = key
  }
  return isSorted
}

/**
 * The RFC 8785 (JCS) bytes of a plain value: keys sorted by UTF-16 code units, no white space, no newline.
 * @throws ManifestError with `code`: `value` (float, null, unsafe integer, undefined, lone surrogate, other classes),
 * `depth`.
 */
export function canonicalBytes(value: unknown, code: ManifestErrorCode = 'E_INVALID'): Uint8Array {
  return toUtf8.encode(canonicalText(value, code))
}

/**
 * {@link canonicalBytes} before they are encoded. RFC 8785 writes strings and numbers as JavaScript does; it adds the order
 * of keys, and that strings are well-formed. So if the keys are in order, and no escape stands for a surrogate,
 * `JSON.stringify` gives the canonical form, at a fifth of the price. A plain value has no `toJSON` for it to call.
 */
function canonicalText(value: unknown, code: ManifestErrorCode): string {
  if (requirePlain(value, code)) {
    const text = JSON.stringify(value)
    if (!text.includes('\\ud')) return text
  }
  try {
    // a plain value always has a text.
    return canonicalize(value)!
  } catch (cause) {
    throw new ManifestError(code, 'value', 'a string of the document is not well-formed Unicode', { cause })
  }
}

function requireLength({ length }: Uint8Array, maxBytes: number, code: ManifestErrorCode): void {
  if (length > maxBytes)
    throw new ManifestError(code, 'too-large', `the document has ${length} bytes, and the limit is ${maxBytes}`)
}

/** Before anything is parsed. */
function requireBounded(text: string, code: ManifestErrorCode, bounds = BOUNDS): void {
  const excess = jsonExcess(text, bounds)
  if (excess === undefined) return
  throw new ManifestError(
    code,
    excess === 'depth' ? 'depth' : 'too-large',
    `the document has ${excessText(excess, bounds)}`
  )
}

/**
 * Parses the bytes of a document strictly: size limit, fatal UTF-8, counts, JSON, plain values. The bytes must be the
 * canonical ones, which also refuses repeated keys, and escapes and number formats that RFC 8785 does not use.
 * @throws ManifestError `E_CORRUPTION`: `too-large`, `utf8`, `depth`, `json`, `value`, `not-canonical`.
 */
export function parseCanonical(
  bytes: Uint8Array,
  maxBytes: number = MAX_DOCUMENT_BYTES,
  maxValues: number = BOUNDS.values
): unknown {
  const corrupt = 'E_CORRUPTION'
  requireLength(bytes, maxBytes, corrupt)
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (cause) {
    throw new ManifestError(corrupt, 'utf8', 'the document is not UTF-8', { cause })
  }
  requireBounded(text, corrupt, { ...BOUNDS, values: maxValues })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new ManifestError(corrupt, 'json', 'the document is not JSON', { cause })
  }
  // comparing texts is enough: a fatal decoder that keeps byte order marks maps different bytes to different texts.
  if (canonicalText(value, corrupt) !== text)
    throw new ManifestError(corrupt, 'not-canonical', 'the document is not in canonical form (RFC 8785)')
  return value
}

/** Seals a checked document. @throws ManifestError `E_INVALID` `too-large`, `value`. */
export function sealDocument<T>(document: T, maxBytes: number = MAX_DOCUMENT_BYTES): Sealed<T> {
  const text = canonicalText(document, 'E_INVALID')
  requireBounded(text, 'E_INVALID')
  const bytes = toUtf8.encode(text)
  requireLength(bytes, maxBytes, 'E_INVALID')
  return { document, bytes, digest: digestFromBytes(sha256(bytes)) }
}
