import { tryParseContentRange } from '@svc/internal-byte-ranges'
import { type Headers, headerOf, isIdentity } from './headers.ts'

/** Bytes `[start, end)` of a file. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

/** Why a body is not what was asked for: its bytes are `encoded`, the file has another `size`, it is another `range`, or none. */
export type BodyDefect = 'encoded' | 'size' | 'range'

/** The message says what the server does, without a subject: "sends another range than was asked". */
export class BodyRangeError extends Error {
  override readonly name = 'BodyRangeError'
  readonly code = 'ERR_BODY_RANGE'
  readonly defect: BodyDefect

  constructor(defect: BodyDefect, message: string) {
    super(message)
    this.defect = defect
  }
}

/**
 * Which bytes of a file of `sizeBytes` the body of a 200 or 206 holds after a request for `span`: all of them in a 200, the
 * span or its beginning in a 206. @throws BodyRangeError
 */
export function bodyRange(
  { status, headers }: { readonly status: number; readonly headers: Headers },
  span: ByteSpan,
  sizeBytes: number
): ByteSpan {
  if (!isIdentity(headers) || /^multipart\//i.test(headerOf(headers, 'content-type') ?? ''))
    throw new BodyRangeError('encoded', 'sends encoded bytes, although plain ones were requested')
  const range = status === 206 ? tryParseContentRange(headerOf(headers, 'content-range')) : undefined
  if (status === 206 && range === undefined) throw new BodyRangeError('range', 'does not say which range it sends')
  const { start, end } = range ?? { start: 0, end: sizeBytes }
  const length = headerOf(headers, 'content-length')
  const said = range === undefined ? length : range.sizeBytes
  if (said !== undefined && Number(said) !== sizeBytes)
    throw new BodyRangeError('size', `has ${said} bytes instead of ${sizeBytes}`)
  if (range !== undefined && (start !== span.start || end > span.end || end > sizeBytes))
    throw new BodyRangeError('range', 'sends another range than the one requested')
  if (length !== undefined && Number(length) !== end - start)
    throw new BodyRangeError('range', 'sends a body whose length differs from its range')
  return { start, end }
}
