import type { IncomingMessage } from 'node:http'

/**
 * The response to a GET of a blob, determined by its precondition and Range headers alone (spec http.14 to http.17, RFC
 * 9110 §13 and §14). Pure: no clock, no I/O.
 */
export type BlobAnswer =
  | { readonly status: 200 }
  | { readonly status: 206; readonly start: number; readonly end: number }
  | { readonly status: 304 }
  | { readonly status: 412 }
  | { readonly status: 416 }

/** The properties of the blob that conditions refer to. */
export interface BlobVersion {
  /** Quoted. */
  readonly etag: string
  readonly modifiedAt?: Date | undefined
}

/** One satisfiable range, `[start, end)`; `whole` when Range is to be ignored; `unsatisfiable` is a 416. */
export type RangeVerdict =
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'whole' }
  | { readonly kind: 'unsatisfiable' }

const WHOLE: RangeVerdict = { kind: 'whole' }
const UNSATISFIABLE: RangeVerdict = { kind: 'unsatisfiable' }
const UNIT = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=/
const SPEC = /^(\d*)[ \t]*-[ \t]*(\d*)$/

/**
 * Parses the value of a `Range` header for a blob of `sizeBytes`.
 *
 * - another unit than `bytes` (any case), or no unit at all: `whole` unless it is a malformed `bytes` set;
 * - an end beyond the blob is clamped, a suffix longer than the blob selects the whole blob, as a partial response;
 * - empty list elements and unsatisfiable members are dropped; if one member is left it is the range, two or more are
 *   `whole`;
 * - a malformed or reversed member, or nothing left: `unsatisfiable`.
 *
 * Numbers may have any length. The HTTP parser limits the header's length.
 */
export function parseRange(header: string, sizeBytes: number): RangeVerdict {
  const unit = UNIT.exec(header.trim())
  if (unit === null) return /^bytes\b/i.test(header.trim()) ? UNSATISFIABLE : WHOLE
  if (unit[1]!.toLowerCase() !== 'bytes') return WHOLE
  const kept: { start: number; end: number }[] = []
  for (const element of header.trim().slice(unit[0].length).split(',')) {
    const text = element.replace(/^[ \t]+|[ \t]+$/g, '')
    if (text === '') continue
    const member = memberOf(text, sizeBytes)
    if (member === undefined) return UNSATISFIABLE
    if (member.start < member.end) kept.push(member)
  }
  const [only] = kept
  if (only === undefined) return UNSATISFIABLE
  return kept.length === 1 ? { kind: 'part', ...only } : WHOLE
}

/** Undefined for a malformed or reversed member; empty for one that lies beyond the blob. */
function memberOf(text: string, sizeBytes: number): { start: number; end: number } | undefined {
  const [, first = '', last = ''] = SPEC.exec(text) ?? []
  if (first === '' && last === '') return undefined
  const clamped = (position: bigint): number => (position < sizeBytes ? Number(position) : sizeBytes)
  if (first === '') return { start: sizeBytes - clamped(BigInt(last)), end: sizeBytes }
  const start = BigInt(first)
  const end = last === '' ? undefined : BigInt(last) + 1n
  if (end !== undefined && end <= start) return undefined
  return { start: clamped(start), end: end === undefined ? sizeBytes : clamped(end) }
}

/** The strong entity tag of a blob: its digest. */
export const blobETag = (digest: string): string => `"${digest}"`

const TAG = /[ \t]*(W\/)?("[\x21\x23-\x7e\x80-\uffff]*")[ \t]*(?:,|$)|[ \t]*,/y

/** Whether the header is `*`, or a list of entity tags with this one; a malformed list matches nothing. */
function listed(header: string, etag: string, weak: boolean): boolean {
  if (header.trim() === '*') return true
  TAG.lastIndex = 0
  let found = false
  while (TAG.lastIndex < header.length) {
    const match = TAG.exec(header)
    if (match === null) return false
    if (match[2] === etag && (weak || match[1] === undefined)) found = true
  }
  return found
}

/**
 * Applies the conditions and Range in the order of RFC 9110 §13.2.2; those about times only where there is one. `HEAD` ignores Range.
 * `If-Range` with a date never matches: the whole blob is sent.
 */
export function blobAnswer(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  { etag, modifiedAt }: BlobVersion,
  sizeBytes: number
): BlobAnswer {
  const { range, 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  const ifRange = headers['if-range'] as string | undefined
  // in seconds, like dates in headers; a comparison with an invalid date is false
  const modified = modifiedAt === undefined ? Number.NaN : Math.floor(modifiedAt.getTime() / 1000) * 1000
  const isChanged =
    ifMatch === undefined ? modified > dateOf(headers['if-unmodified-since']) : !listed(ifMatch, etag, false)
  if (isChanged) return { status: 412 }
  const isKnown =
    ifNoneMatch === undefined ? modified <= dateOf(headers['if-modified-since']) : listed(ifNoneMatch, etag, true)
  if (isKnown) return { status: 304 }
  if (method === 'HEAD' || range === undefined) return { status: 200 }
  if (ifRange !== undefined && ifRange.trim() !== etag) return { status: 200 }
  const verdict = parseRange(range, sizeBytes)
  if (verdict.kind === 'whole') return { status: 200 }
  if (verdict.kind === 'unsatisfiable') return { status: 416 }
  return { status: 206, start: verdict.start, end: verdict.end }
}

const dateOf = (header = ''): number => Date.parse(header)
