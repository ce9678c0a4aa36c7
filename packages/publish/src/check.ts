import { systemClock, within } from '@svc/internal-clock'
import { BodyRangeError, bodyRange, type HttpClient, RedirectError, type Response } from '@svc/internal-http'
import { isRefusedAddress, policyFrom } from '@svc/internal-net'
import { readContentRange } from './content.ts'
import { PublishError } from './errors.ts'
import { urlOf } from './key.ts'
import type { PublishedObject, Target } from './target.ts'

const SAMPLE_BYTES = 64 << 10
/** Per request; each reads at most 3 × {@link SAMPLE_BYTES}. */
const TIMEOUT_MS = 30_000
const MAX_REDIRECTS = 5

/** Reads a byte range of a published object, the way its readers will. */
export type RangeReader = Target['readRange']

/** The ranges to compare: all of a small object; else its start, its end, and one in between, which its digest selects. */
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

/** Errors of a connection that was never made. */
const NOBODY: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT'
])

/** Reads ranges over HTTP below a base URL, without credentials, as any client would. Accepts only a 206 answer. */
export function throughUrl(base: string, http: HttpClient, clock = systemClock): RangeReader {
  const policyOf = policyFrom(new URL(base))
  return async (object, start, end, outer) => {
    const url = new URL(urlOf(base, object.key))
    const failed = (what: string, cause?: unknown): PublishError =>
      new PublishError('E_CHECK_FAILED', `${url}: ${what}`, cause)
    const headers = { range: `bytes=${start}-${end - 1}` }
    const hop = async (next: URL) => ({ headers, policy: await policyOf(next) })
    try {
      return await within(clock, TIMEOUT_MS, outer, async (signal) => {
        const answer = (await http.follow(url, { signal, redirects: MAX_REDIRECTS, hop })) as Response
        try {
          if (answer.status === 200) throw failed('the server ignores range requests, which BitTorrent clients need')
          if (answer.status !== 206) throw failed(`the server answered ${answer.status}`)
          bodyRange(answer, { start, end }, object.sizeBytes)
          return await answer.bytes(end - start)
        } finally {
          answer.destroy()
        }
      })
    } catch (cause) {
      outer?.throwIfAborted()
      if (cause instanceof PublishError) throw cause
      const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
      if (cause instanceof BodyRangeError || cause instanceof RedirectError)
        throw failed(`the server ${message}`, cause)
      if (isRefusedAddress(cause)) throw failed(`the server redirects, but ${message}`, cause)
      const why = String(typeof code === 'string' ? code : message)
      if (NOBODY.has(why))
        throw new PublishError('E_UNAVAILABLE', `${url}: no web server answers there (${why})`, cause)
      throw failed(`cannot be read (${why})`, cause)
    }
  }
}
