/** What of a plain answer counts: see {@link readPlainHead}. */
export interface PlainHead {
  /** The headers that say which bytes these are, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Bytes of the body: exactly so many follow. */
  readonly bodyBytes: number
  /** The connection serves another request afterwards. */
  readonly keepsAlive: boolean
  /** Where in the bytes given the body begins. */
  readonly headBytes: number
}

/** `more`: the head is not complete. `status`: another status than 206. `form`: a 206 that is not as plain as it has to be. */
export type NoPlainHead = 'more' | 'status' | 'form'

/** Longest head that is read. */
export const MAX_HEAD_BYTES = 16_384
const MAX_FIELDS = 100

const STATUS = /^HTTP\/1\.1 (\d{3})(?: [\t\x20-\x7e]*)?$/
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e]*?)[\t ]*$/
const CONTENT_RANGE = /^bytes (\d{1,15})-(\d{1,15})\/(?:(\d{1,15})|\*)$/
/** A body that is anything but so many bytes as they are. Repeated headers of these names are no better. */
const NEVER = new Set(['transfer-encoding', 'trailer', 'upgrade'])
const ONCE = new Set(['content-length', 'content-range', 'content-encoding', 'content-type', 'etag', 'connection'])

/**
 * Reads the head of one answer to a request for the bytes `[start, end)` of a file of `sizeBytes`: HTTP/1.1 206 with a `Content-Length`
 * that is that of its `Content-Range`, which begins at `start` and does not go beyond `end`; nothing encoded, nothing in several parts,
 * nothing repeated, folded or beyond ASCII. It understands nothing else, on purpose: whatever is not this goes to a complete HTTP client.
 */
export function readPlainHead(
  bytes: Buffer,
  { start, end, sizeBytes }: { readonly start: number; readonly end: number; readonly sizeBytes: number }
): PlainHead | NoPlainHead {
  const until = bytes.indexOf('\r\n\r\n')
  if (until < 0) return bytes.length < MAX_HEAD_BYTES ? 'more' : 'form'
  if (until > MAX_HEAD_BYTES) return 'form'
  const [first, ...fields] = bytes.toString('latin1', 0, until).split('\r\n')
  const status = STATUS.exec(first!)?.[1]
  if (status === undefined) return 'form'
  if (status !== '206') return 'status'
  if (fields.length > MAX_FIELDS) return 'form'
  const headers: Record<string, string> = Object.create(null)
  for (const field of fields) {
    const [, spelled, value] = FIELD.exec(field) ?? []
    if (spelled === undefined || value === undefined) return 'form'
    const name = spelled.toLowerCase()
    if (NEVER.has(name) || (ONCE.has(name) && name in headers)) return 'form'
    if (ONCE.has(name)) headers[name] = value
  }
  const length = headers['content-length'] ?? ''
  const [, from, to, total] = CONTENT_RANGE.exec(headers['content-range'] ?? '') ?? []
  if (!/^\d{1,15}$/.test(length) || from === undefined || to === undefined) return 'form'
  const bodyBytes = Number(length)
  if (Number(from) !== start || Number(to) >= end || Number(to) + 1 - start !== bodyBytes) return 'form'
  if (bodyBytes < 1 || (total !== undefined && Number(total) !== sizeBytes)) return 'form'
  if (!/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return 'form'
  if (/^multipart\//i.test(headers['content-type'] ?? '')) return 'form'
  const connection = (headers.connection ?? 'keep-alive').toLowerCase()
  if (connection !== 'keep-alive' && connection !== 'close') return 'form'
  return { headers, bodyBytes, keepsAlive: connection === 'keep-alive', headBytes: until + 4 }
}
