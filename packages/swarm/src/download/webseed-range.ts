import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { SwarmError } from '../errors.ts'

/** Encodes all but unreserved characters (RFC 3986 §2.3), as signatures of object stores require; every server decodes the rest. */
const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

/** The URL of a file at a webseed (BEP 19): `<base>/<name>/<path>`, each segment percent-encoded. */
export function webseedUrl(base: string, layout: TorrentLayout, file: LayoutFile): string {
  const encode = (text: string): string => text.split('/').map(encodeSegment).join('/')
  if (layout.singleFile) return base.endsWith('/') ? `${base}${encode(layout.name)}` : base
  return `${base.endsWith('/') ? base : `${base}/`}${encode(layout.name)}/${encode(file.path)}`
}

/** How a webseed's answer to a range request is to be handled. */
export type RangeVerdict =
  | { readonly kind: 'body' /** Bytes of the body before the range begins. */; readonly skipBytes: number }
  /** The webseed does not have this file. */
  | { readonly kind: 'no-file'; readonly reason: string }
  | { readonly kind: 'redirect'; readonly location: string }
  /** Try again later. */
  | { readonly kind: 'later'; readonly reason: string; readonly retryAfterMs: number | undefined }

/** A server that ignores ranges sends the whole file; at most this much is read and discarded before the range. */
const MAX_SKIP_BYTES = 16 * 1024 * 1024

const headerText = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value

/**
 * Checks status and headers of the answer to `Range: bytes=start-(end-1)` for a file of `sizeBytes` (RFC 9110 §14).
 * Pure. A 206 must cover exactly the requested range.
 */
export function judgeRange(
  answer: { readonly status: number; readonly headers: Readonly<Record<string, string | string[] | undefined>> },
  start: number,
  end: number,
  sizeBytes: number
): RangeVerdict {
  const { status, headers } = answer
  const length = headerText(headers['content-length'])
  const encoding = headerText(headers['content-encoding'])
  if (encoding !== undefined && encoding !== 'identity')
    return { kind: 'no-file', reason: `content encoding ${encoding}` }
  if (status === 206) {
    const range = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/.exec(headerText(headers['content-range']) ?? '')
    if (range === null) return { kind: 'no-file', reason: '206 without a usable Content-Range' }
    if (range[3] !== '*' && Number(range[3]) !== sizeBytes)
      return { kind: 'no-file', reason: `a file of ${range[3]} bytes, not ${sizeBytes}` }
    if (Number(range[1]) !== start || Number(range[2]) !== end - 1)
      return { kind: 'no-file', reason: 'another range than the one asked for' }
    if (length !== undefined && Number(length) !== end - start)
      return { kind: 'no-file', reason: 'Content-Length does not match its range' }
    return { kind: 'body', skipBytes: 0 }
  }
  if (status === 200) {
    if (length !== undefined && Number(length) !== sizeBytes)
      return { kind: 'no-file', reason: `a file of ${length} bytes, not ${sizeBytes}` }
    if (start > MAX_SKIP_BYTES) return { kind: 'no-file', reason: 'the server ignores ranges' }
    return { kind: 'body', skipBytes: start }
  }
  if ([301, 302, 303, 307, 308].includes(status)) {
    const location = headerText(headers.location)
    return location === undefined
      ? { kind: 'no-file', reason: 'a redirect to nowhere' }
      : { kind: 'redirect', location }
  }
  if (status === 408 || status === 429 || status >= 500) {
    const seconds = Number(headerText(headers['retry-after']))
    return {
      kind: 'later',
      reason: `status ${status}`,
      retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 600) * 1000 : undefined
    }
  }
  return { kind: 'no-file', reason: `status ${status}` }
}

/** @throws SwarmError `E_ADDRESS` unless it is an http or https URL. */
export function parseWebseedUrl(text: string): URL {
  let url: URL
  try {
    url = new URL(text)
  } catch (cause) {
    throw new SwarmError('E_ADDRESS', 'webseed-url', 'a webseed is an http or https URL', {
      cause,
      details: { url: text }
    })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new SwarmError('E_ADDRESS', 'webseed-url', 'a webseed is an http or https URL', { details: { url: text } })
  }
  return url
}
