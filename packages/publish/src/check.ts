import { readContent } from './content.ts'
import { PublishError } from './errors.ts'
import { urlOf } from './key.ts'
import type { PublishedObject, Target } from './target.ts'

const SAMPLE_BYTES = 64 << 10
/** For one range of at most {@link SAMPLE_BYTES}. */
const TIMEOUT_MS = 30_000

/** Reads a range of an object as somebody else would. */
export type RangeReader = (
  object: PublishedObject,
  start: number,
  end: number,
  signal?: AbortSignal
) => Promise<Uint8Array>

/** The ranges that are looked at: all of a small object, else its beginning, its end and a part that its digest chooses. */
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
 * Reads samples of an object back, by ranges, and compares them with what was published.
 * @returns how many ranges were read. @throws PublishError `E_CHECK_FAILED`, and what `read` throws
 */
export async function checkObject(
  object: PublishedObject,
  where: string,
  read: RangeReader,
  signal?: AbortSignal
): Promise<number> {
  const samples = samplesOf(object)
  for (const [start, end] of samples) {
    const [wanted, found] = await Promise.all([readContent(object, start, end), read(object, start, end, signal)])
    if (Buffer.compare(wanted, found) !== 0) {
      throw new PublishError(
        'E_CHECK_FAILED',
        `${where} gives other bytes than were published: ${object.key}, bytes ${start} to ${end - 1}`
      )
    }
  }
  return samples.length
}

/** Ranges by way of the target itself, with its credentials. */
export const throughTarget =
  (target: Target): RangeReader =>
  (object, start, end, signal) =>
    target.readRange(object, start, end, signal)

/** Ranges as any client gets them at a base address. What comes back has to be exactly what was asked for. */
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
      if (status === 200) throw failed('the server ignores ranges, which BitTorrent clients need')
      if (status !== 206) throw failed(`the server answers ${status}`)
      if (headers.get('content-range') !== `bytes ${start}-${end - 1}/${object.sizeBytes}`)
        throw failed('the server answers another range than the one asked for')
      if ((headers.get('content-encoding') ?? 'identity') !== 'identity')
        throw failed('the server encodes what it sends')
      const bytes = Buffer.alloc(end - start)
      let at = 0
      for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
        if (at + chunk.length > bytes.length) throw failed('the server sends more than its range')
        bytes.set(chunk, at)
        at += chunk.length
      }
      return bytes.subarray(0, at)
    } catch (cause) {
      outer?.throwIfAborted()
      throw cause instanceof PublishError ? cause : failed(`the answer broke off (${reasonOf(cause)})`, cause)
    } finally {
      await answer.body?.cancel().catch(() => undefined)
    }
  }

function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: unknown; message?: unknown }; message?: unknown }
  return String(cause?.code ?? cause?.message ?? message)
}
