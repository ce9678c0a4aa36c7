import { isObject, own } from '@svc/internal-http'
import { XetAnswerError } from './answer-error.ts'
import { MAX_CHUNK_BYTES } from './chunks.ts'

/** Chunks `[start, end)` of a xorb, which follow each other in a file. */
export interface Term {
  readonly xorb: string
  readonly start: number
  readonly end: number
  /** Where they begin in the file. */
  readonly offset: number
  readonly lengthBytes: number
  /** Of each chunk, where the service says so; they add up to `lengthBytes`. */
  readonly chunkBytes: readonly number[]
}

/** Bytes `[from, to)` of a xorb, which hold its chunks `[start, end)`. */
export interface XorbRange {
  readonly start: number
  readonly end: number
  readonly from: number
  readonly to: number
}

/** A signed address of a xorb. Its ranges are requested together, as they were signed. */
export interface XorbFetch {
  readonly xorb: string
  readonly url: string
  readonly ranges: readonly XorbRange[]
}

/** How a file is put together from chunks. The lengths of the terms add up to the file's. */
export interface Reconstruction {
  readonly terms: readonly Term[]
  readonly fetches: readonly XorbFetch[]
}

const HASH = /^[0-9a-f]{64}$/
/** Limits of the format: chunks of a xorb, and its bytes with the headers of its chunks. */
const MAX_CHUNKS = 8_192
const MAX_XORB_BYTES = (64 << 20) + MAX_CHUNKS * 8
/** A file of 37 GB without a history has about 600. */
const MAX_TERMS = 50_000
/** Chunks whose lengths are given: services do that for up to 1 GiB. */
const MAX_SIZED_CHUNKS = 150_000
const MAX_FETCHES = 50_000
const MAX_RANGES = 1_000
const MAX_URL_LENGTH = 16_384

/**
 * Checks an answer about a file of `sizeBytes`, of version 1 (`fetch_info`) or 2 (`xorbs`). `from` sent it: if that uses TLS, addresses without
 * it are refused. @throws XetAnswerError
 */
export function parseReconstruction(value: unknown, sizeBytes: number, from: URL): Reconstruction {
  if (!isObject(value) || own(value, 'offset_into_first_range') !== 0) throw bad('does not begin where the file does')
  const terms: Term[] = []
  let [offset, sized] = [0, 0]
  for (const entry of listOf(own(value, 'terms'), MAX_TERMS)) {
    const term = parseTerm(entry, offset)
    offset += term.lengthBytes
    sized += term.chunkBytes.length
    if (sized > MAX_SIZED_CHUNKS) throw bad('says too many lengths')
    if (offset > sizeBytes) throw bad('is longer than the file')
    terms.push(term)
  }
  if (offset !== sizeBytes) throw bad('is shorter than the file')
  const named = new Set(terms.map(({ xorb }) => xorb))
  const fetches: XorbFetch[] = []
  for (const [xorb, entry] of Object.entries(objectOf(own(value, 'xorbs') ?? own(value, 'fetch_info')))) {
    if (!named.has(xorb)) continue
    for (const fetch of listOf(isObject(entry) ? own(entry, 'fetch') : entry, MAX_RANGES))
      fetches.push({ xorb, ...parseFetch(fetch, from) })
    if (fetches.length > MAX_FETCHES) throw bad('names too many addresses')
  }
  return { terms, fetches }
}

function parseTerm(entry: unknown, offset: number): Term {
  const fields = objectOf(entry)
  const xorb = own(fields, 'hash')
  if (typeof xorb !== 'string' || !HASH.test(xorb)) throw bad('names a xorb without a hash')
  const { start, end } = parseChunkRange(own(fields, 'range'))
  const lengthBytes = own(fields, 'unpacked_length')
  if (!isCount(lengthBytes) || lengthBytes < end - start || lengthBytes > (end - start) * MAX_CHUNK_BYTES)
    throw bad('gives chunks an impossible length')
  const chunkBytes = listOf(own(fields, 'chunk_byte_sizes') ?? [], MAX_CHUNKS)
  if (chunkBytes.length > 0 && (chunkBytes.length !== end - start || !addUp(chunkBytes, lengthBytes)))
    throw bad('gives chunks two lengths')
  return { xorb, start, end, offset, lengthBytes, chunkBytes: chunkBytes as readonly number[] }
}

function addUp(sizes: readonly unknown[], lengthBytes: number): boolean {
  let sum = 0
  for (const size of sizes) {
    if (!isCount(size) || size === 0) return false
    sum += size
  }
  return sum === lengthBytes
}

function parseFetch(entry: unknown, from: URL): Pick<XorbFetch, 'url' | 'ranges'> {
  const fields = objectOf(entry)
  const ranges = own(fields, 'ranges')
  const found =
    ranges === undefined
      ? [parseXorbRange(own(fields, 'range'), own(fields, 'url_range'))]
      : listOf(ranges, MAX_RANGES).map((range) =>
          parseXorbRange(own(objectOf(range), 'chunks'), own(objectOf(range), 'bytes'))
        )
  if (found.length === 0) throw bad('signs no range of a xorb')
  for (const [i, { start, from: first }] of found.entries())
    if (i > 0 && (start < found[i - 1]!.end || first < found[i - 1]!.to)) throw bad('has ranges that overlap')
  return { url: parseNamedUrl(own(fields, 'url'), from).href, ranges: found }
}

function parseXorbRange(chunks: unknown, bytes: unknown): XorbRange {
  const range = objectOf(bytes)
  const [from, last] = [own(range, 'start'), own(range, 'end')]
  if (!isCount(from) || !isCount(last) || last < from || last >= MAX_XORB_BYTES) throw bad('has an impossible range')
  return { ...parseChunkRange(chunks), from, to: last + 1 }
}

function parseChunkRange(value: unknown): Pick<Term, 'start' | 'end'> {
  const range = objectOf(value)
  const [start, end] = [own(range, 'start'), own(range, 'end')]
  if (!isCount(start) || !isCount(end) || start >= end || end > MAX_CHUNKS) throw bad('names impossible chunks')
  return { start, end }
}

/** An address that `from` names. Which hosts it may name is decided where it is dialled. @throws XetAnswerError */
export function parseNamedUrl(value: unknown, from: URL): URL {
  const url = typeof value === 'string' && value.length <= MAX_URL_LENGTH ? URL.parse(value) : null
  const isPlain = url !== null && ['http:', 'https:'].includes(url.protocol) && url.username + url.password === ''
  if (!isPlain || (from.protocol === 'https:' && url.protocol !== 'https:'))
    throw bad('names something that is not a plain URL, or one without encryption')
  url.hash = ''
  return url
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw bad('lacks a part')
  return value
}

function listOf(value: unknown, max: number): readonly unknown[] {
  if (!Array.isArray(value)) throw bad('lacks a list')
  if (value.length > max) throw bad(`has a list of more than ${max}`)
  return value
}

const bad = (what: string): XetAnswerError => new XetAnswerError(`a reconstruction ${what}`)
