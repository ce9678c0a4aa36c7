import { type BodyRangeError, bodyRange, encodePath, type Headers, headerOf, parseRetryAfter } from '@svc/internal-http'
import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { SwarmError } from '../errors.ts'

/** The URL of a file at a webseed (BEP 19): `<base>/<name>/<path>`, each segment percent-encoded. */
export function webseedUrl(base: string, layout: TorrentLayout, file: LayoutFile): string {
  if (layout.singleFile) return base.endsWith('/') ? `${base}${encodePath(layout.name)}` : base
  return `${base.endsWith('/') ? base : `${base}/`}${encodePath(layout.name)}/${encodePath(file.path)}`
}

/** How a webseed's answer to a range request is to be handled. */
export type WebseedVerdict =
  | { readonly kind: 'body' /** Bytes of the body before the range begins. */; readonly skipBytes: number }
  /** The webseed does not have this file. */
  | { readonly kind: 'no-file'; readonly reason: string }
  /** Try again later. */
  | { readonly kind: 'later'; readonly reason: string; readonly retryAfterMs: number | undefined }

/** A server that ignores ranges sends the whole file; at most this much is read and discarded before the range. */
const MAX_SKIP_BYTES = 16 * 1024 * 1024
const MAX_WAIT_MS = 600_000

/** Judges the answer to `Range: bytes=start-(end-1)` for a file of `sizeBytes`. A 206 must cover exactly the requested range. */
export function judgeRange(
  answer: { readonly status: number; readonly headers: Headers },
  start: number,
  end: number,
  sizeBytes: number,
  nowMs: number
): WebseedVerdict {
  const { status, headers } = answer
  if (status === 408 || status === 429 || status >= 500) {
    const askedMs = parseRetryAfter(headerOf(headers, 'retry-after'), nowMs)
    const retryAfterMs = askedMs === undefined || askedMs === 0 ? undefined : Math.min(askedMs, MAX_WAIT_MS)
    return { kind: 'later', reason: `status ${status}`, retryAfterMs }
  }
  if (status !== 200 && status !== 206) return { kind: 'no-file', reason: `status ${status}` }
  try {
    const body = bodyRange(answer, { start, end }, sizeBytes)
    const skipBytes = start - body.start
    if (body.end < end) return { kind: 'no-file', reason: 'it sends less than was requested' }
    if (skipBytes > MAX_SKIP_BYTES) return { kind: 'no-file', reason: 'it ignores ranges' }
    return { kind: 'body', skipBytes }
  } catch (error) {
    return { kind: 'no-file', reason: `it ${(error as BodyRangeError).message}` }
  }
}

/** @throws SwarmError `E_ADDRESS` unless it is an http or https URL. */
export function parseWebseedUrl(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new SwarmError('E_ADDRESS', 'webseed-url', 'a webseed must be an http or https URL', { details: { url: text } })
}
