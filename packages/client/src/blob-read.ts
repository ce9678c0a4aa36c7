import type { IncomingMessage } from 'node:http'
import { type Readable, Transform, type TransformCallback } from 'node:stream'
import { tryParseContentRange } from '@svc/internal-byte-ranges'
import { ClientError } from './errors.ts'

/** Facts from the head of a blob response. */
export interface BlobHead {
  /** Size of the whole blob. */
  readonly sizeBytes: number
}

/** A blob, or `[start, end)` of it, that is being received. */
export interface BlobRead extends BlobHead {
  readonly start: number
  /** Exclusive; at most `sizeBytes`. */
  readonly end: number
  /** Exactly `end - start` bytes, or an error: `E_SHORT_BODY` when the connection breaks. Destroy it to stop early. */
  readonly body: Readable
}

/** A slice of a blob: bytes `[start, end)`; by default from 0 to the end of the blob. */
export interface BlobSlice {
  readonly start?: number | undefined
  readonly end?: number | undefined
}

/** `Range` header of a slice (RFC 9110 §14.1.2), undefined for the whole blob. @throws ClientError `E_RANGE_INVALID` */
export function rangeHeader({ start = 0, end }: BlobSlice): string | undefined {
  const fits = (n: number): boolean => Number.isSafeInteger(n) && n >= 0
  if (!fits(start) || (end !== undefined && (!fits(end) || end <= start))) {
    throw new ClientError('E_RANGE_INVALID', `bytes ${start} to ${end} (exclusive) are not a range`)
  }
  if (start === 0 && end === undefined) return undefined
  return `bytes=${start}-${end === undefined ? '' : end - 1}`
}

/** Checks the head of a blob response against the requested `slice`. @throws ClientError `E_BAD_RESPONSE` */
export function openBlobRead(response: IncomingMessage, slice: BlobSlice, signal?: AbortSignal): BlobRead {
  const length = Number(response.headers['content-length'])
  const whole = rangeHeader(slice) === undefined
  const range =
    response.statusCode === 206
      ? tryParseContentRange(response.headers['content-range'])
      : { start: 0, end: length, sizeBytes: length }
  const sizeBytes = range?.sizeBytes ?? Number.NaN
  const start = slice.start ?? 0
  const end = Math.min(slice.end ?? sizeBytes, sizeBytes)
  const right =
    response.statusCode === (whole ? 200 : 206) && end - start === length && range?.start === start && range.end === end
  if (!right) {
    response.destroy()
    throw new ClientError('E_BAD_RESPONSE', "the daemon's answer is not the requested range", {
      status: response.statusCode
    })
  }
  return { sizeBytes, start, end, body: exactly(response, length, signal) }
}

/** The response's body; fails unless it has exactly `expectedBytes`. */
function exactly(response: IncomingMessage, expectedBytes: number, signal: AbortSignal | undefined): Readable {
  let seenBytes = 0
  const short = (cause?: unknown): ClientError =>
    new ClientError('E_SHORT_BODY', `the blob ended after ${seenBytes} of ${expectedBytes} bytes`, { cause })
  const body = new Transform({
    highWaterMark: 1 << 20,
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      seenBytes += chunk.length
      done(null, chunk)
    },
    flush(done: TransformCallback) {
      done(seenBytes === expectedBytes ? null : short())
    },
    destroy(error, done) {
      response.destroy()
      done(error)
    }
  })
  response.on('error', (error) => body.destroy(signal?.aborted === true ? (signal.reason as Error) : short(error)))
  response.pipe(body)
  return body
}
