import { isDigest, type Sha256Digest } from '@svc/ref'

/**
 * A file in the state folder has invalid content. It is named in the error, left alone and never rebuilt (spec
 * disk.10).
 */
export class CorruptStateError extends Error {
  override readonly name = 'CorruptStateError'
  /** Relative to the root, as in `state/repos/ns/name.json`. */
  readonly file: string

  constructor(file: string, what: string, cause?: unknown) {
    super(`${file}: ${what}; restore the file or move it away`, cause === undefined ? undefined : { cause })
    this.file = file
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** State files are small; a larger one is not ours. */
const MAX_STATE_BYTES = 4 << 20
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses a UTF-8 JSON object. @throws CorruptStateError */
export function parseStateText(bytes: Uint8Array, file: string): Fields {
  if (bytes.length > MAX_STATE_BYTES) throw new CorruptStateError(file, `larger than ${MAX_STATE_BYTES} bytes`)
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new CorruptStateError(file, 'not UTF-8 JSON', cause)
  }
  return fieldsOf(value, file, 'the file')
}

export function fieldsOf(value: unknown, file: string, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new CorruptStateError(file, `${what} is not a JSON object`)
}

/** Refuses keys other than `known`. */
export function onlyKeys(fields: Fields, known: readonly string[], file: string): void {
  for (const key of Object.keys(fields)) {
    if (!known.includes(key)) throw new CorruptStateError(file, `unknown key ${JSON.stringify(key.slice(0, 80))}`)
  }
}

export function digestField(value: unknown, file: string, what: string): Sha256Digest {
  if (isDigest(value)) return value
  throw new CorruptStateError(file, `${what} is not a digest`)
}

export function stringsField(value: unknown, file: string, what: string): readonly string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
  throw new CorruptStateError(file, `${what} is not a list of strings`)
}
