import { readContentRange } from './content.ts'
import { PublishError } from './errors.ts'
import { urlOf } from './key.ts'
import type { PublishedObject, Target } from './target.ts'

const SAMPLE_BYTES = 64 << 10
/** Per request; each reads at most 3 × {@link SAMPLE_BYTES}. */
const TIMEOUT_MS = 30_000

/** Reads a byte range of a published object, the way its readers will. */
export type RangeReader = (
  object: PublishedObject,
  start: number,
  end: number,
  signal?: AbortSignal
) => Promise<Uint8Array>

/** The ranges to compare: all of a small object; else its start, its end, and one in between at an offset derived from its digest. */
function samplesOf({ sizeBytes, digest }: PublishedObject): readonly (readonly [number, number])[] {
  if (sizeBytes <= 3 * SAMPLE_BYTES) return sizeBytes === 0 ? [] : [[0, sizeBytes]]
  const room = sizeBytes - 3 * SAMPLE_BYTES
  const middle = SAMPLE_BYTES + (Number.parseInt(digest.slice(-12), 16) % room)
  return [
    [0, SAMPLE_BYTES],
    [middle, middle + SAMPLE_BYTES],
    [sizeBytes - SAMPLE_BYTES, sizeBytes]
  ]
}

/**
 * Reads sample ranges of an object back and compares them with the published content.
 * @returns the number of ranges read. @throws PublishError `E_CHECK_FAILED`; errors of `read`
 */
export async function checkObject(
  object: PublishedObject,
  where: string,
  read: RangeReader,
  signal?: AbortSignal
): Promise<number> {
  const samples = samplesOf(object)
  for (const [start, end] of samples) {
    const [wanted, found] = await Promise.all([readContentRange(object, start, end), read(object, start, end, signal)])
    if (Buffer.compare(wanted, found) !== 0) {
      throw new PublishError(
        'E_CHECK_FAILED',
        `${where} returned different bytes than were published: ${object.key}, bytes ${start} to ${end - 1}`
      )
    }
  }
  return samples.length
}

/** Reads ranges through the target itself, with its credentials. */
export const throughTarget =
  (target: Target): RangeReader =>
  (object, start, end, signal) =>
    target.readRange(object, start, end, signal)

/** Reads ranges over HTTP below a base URL, without credentials, as any client would. Accepts only an exact 206 answer. */
export const throughUrl =
  (base: string): RangeReader =>
  async (object, start, end, outer) => {
    const url = urlOf(base, object.key)
    const failed = (what: string, cause?: unknown): PublishError =>
      new PublishError('E_CHECK_FAILED', `${url}: ${what}`, cause)
    const signal = AbortSignal.any([...(outer === undefined ? [] : [outer]), AbortSignal.timeout(TIMEOUT_MS)])
    let answer: Response
    try {
      answer = await fetch(url, {
        signal,
        headers: { range: `bytes=${start}-${end - 1}`, 'accept-encoding': 'identity', 'user-agent': 'svc' }
      })
    } catch (cause) {
      outer?.throwIfAborted()
      throw failed(`cannot be reached (${reasonOf(cause)})`, cause)
    }
    try {
      const { status, headers } = answer
      if (status === 200) throw failed('the server ignores range requests, which BitTorrent clients need')
      if (status !== 206) throw failed(`the server answered ${status}`)
      if (headers.get('content-range') !== `bytes ${start}-${end - 1}/${object.sizeBytes}`)
        throw failed('the server answered with a different range than the one requested')
      if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
        throw failed('the server compresses or encodes the content')
      const bytes = Buffer.alloc(end - start)
      let at = 0
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
        if (at + chunk.length > bytes.length) throw failed('the server sent more bytes than requested')
        bytes.set(chunk, at)
        at += chunk.length
      }
      return bytes.subarray(0, at)
    } catch (cause) {
      outer?.throwIfAborted()
      throw cause instanceof PublishError ? cause : failed(`the connection broke (${reasonOf(cause)})`, cause)
    } finally {
      await answer.body?.cancel().catch(() => undefined)
    }
  }

function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: unknown; message?: unknown }; message?: unknown }
  return String(cause?.code ?? cause?.message ?? message)
}
