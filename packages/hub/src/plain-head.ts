import { bodyRange } from '@svc/internal-http'

/** The relevant content of a plain response head: see {@link readPlainHead}. */
export interface PlainHead {
  /** The headers that identify the bytes; names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The exact number of body bytes that follow. */
  readonly bodyBytes: number
  readonly keepsAlive: boolean
  /** Offset of the body within the given bytes. */
  readonly headBytes: number
}

/** `more`: the head is incomplete. `status`: not a 206. `form`: a 206 that is not as plain as required. */
export type NoPlainHead = 'more' | 'status' | 'form'

export const MAX_HEAD_BYTES = 16_384
const MAX_FIELDS = 100

const STATUS = /^HTTP\/1\.1 (\d{3})(?: [\t\x20-\x7e]*)?$/
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e]*?)[\t ]*$/
/** Headers with which a body is not a plain sequence of bytes. */
const NEVER = new Set(['transfer-encoding', 'trailer', 'upgrade'])
const ONCE = new Set(['content-length', 'content-range', 'content-encoding', 'content-type', 'etag', 'connection'])

/**
 * Parses the head of a response to a request for bytes `[start, end)` of a file of `sizeBytes`: HTTP/1.1 206 whose
 * `Content-Length` matches its `Content-Range`, which starts at `start` and does not extend beyond `end`; no encoding,
 * no multipart, and no header that is repeated, folded or non-ASCII. It deliberately understands nothing else: other
 * responses go to a complete HTTP client.
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
  const headers = headersOf(fields)
  if (headers === undefined || !/^\d{1,15}$/.test(headers['content-length'] ?? '')) return 'form'
  try {
    bodyRange({ status: 206, headers }, { start, end }, sizeBytes)
  } catch {
    return 'form'
  }
  const connection = (headers.connection ?? 'keep-alive').toLowerCase()
  if (connection !== 'keep-alive' && connection !== 'close') return 'form'
  return {
    headers,
    bodyBytes: Number(headers['content-length']),
    keepsAlive: connection === 'keep-alive',
    headBytes: until + 4
  }
}

/** The headers that say how to read the body; undefined if a plain reader must not read it. */
function headersOf(fields: readonly string[]): Record<string, string> | undefined {
  if (fields.length > MAX_FIELDS) return undefined
  const headers: Record<string, string> = Object.create(null)
  for (const field of fields) {
    const [, spelled, value] = FIELD.exec(field) ?? []
    if (spelled === undefined || value === undefined) return undefined
    const name = spelled.toLowerCase()
    if (NEVER.has(name) || (ONCE.has(name) && name in headers)) return undefined
    if (ONCE.has(name)) headers[name] = value
  }
  return headers
}
