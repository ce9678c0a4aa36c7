import { isDigest, type Sha256Digest } from '@svc/ref'
import { CasError } from './errors.ts'
import type { ByteRanges, PartialKey } from './store.ts'

/** The content of `incoming/<id>.json`: which blob its part file will become, and which ranges of it are durable. */
export interface Journal {
  readonly key: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest | undefined
  readonly ranges: ByteRanges
}

export const MAX_JOURNAL_BYTES = 4 << 20
const MAX_KEY_LENGTH = 200
/** Further ranges are not recorded; they are fetched again. */
const MAX_RANGES = 65_536
const FIELDS = new Set(['version', 'key', 'sizeBytes', 'digest', 'ranges'])

/** @throws CasError `E_RANGE` when the size or the key is out of bounds. */
export function checkPartialKey(key: PartialKey): void {
  if (!isKey(key.key)) throw new CasError('E_RANGE', `the key of a partial blob has 1 to ${MAX_KEY_LENGTH} characters`)
  if (!isSize(key.sizeBytes)) {
    throw new CasError('E_RANGE', 'the size of a partial blob is a whole number of bytes')
  }
}

/** Inverts {@link tryParseJournal}, except for ranges beyond the 65,536th. */
export const formatJournal = ({ key, sizeBytes, digest, ranges }: Journal): Uint8Array =>
  Buffer.from(JSON.stringify({ version: 1, key, sizeBytes, digest, ranges: ranges.slice(0, MAX_RANGES) }))

/**
 * Strict: a journal with an unknown field, or with a value out of bounds or out of order, is rejected, and its part
 * file is deleted.
 */
export function tryParseJournal(bytes: Uint8Array): Journal | undefined {
  if (bytes.length > MAX_JOURNAL_BYTES) return undefined
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (Object.keys(value).some((field) => !FIELDS.has(field))) return undefined
  const { version, key, sizeBytes, digest, ranges } = value as Record<string, unknown>
  if (version !== 1 || !isKey(key) || !isSize(sizeBytes)) return undefined
  if (digest !== undefined && !isDigest(digest)) return undefined
  if (!isRangeList(ranges, sizeBytes)) return undefined
  return { key, sizeBytes, digest, ranges }
}

const isKey = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_KEY_LENGTH
const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function isRangeList(value: unknown, sizeBytes: number): value is ByteRanges {
  if (!Array.isArray(value) || value.length > MAX_RANGES) return false
  let before = -1
  for (const range of value as unknown[]) {
    if (!Array.isArray(range) || range.length !== 2) return false
    const [start, end] = range as unknown[]
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end)) return false
    if ((start as number) <= before || (start as number) >= (end as number) || (end as number) > sizeBytes) return false
    before = end as number
  }
  return true
}
