/** Headers as Node and undici give them: names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The value of a header; repeated ones are joined as HTTP allows. */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** True if a body is not encoded: no Content-Encoding but `identity`. */
export const isIdentity = (headers: Headers): boolean =>
  /^\s*(?:identity)?\s*$/i.test(headerOf(headers, 'content-encoding') ?? '')

/** `Retry-After` as milliseconds from now: seconds or an HTTP date (RFC 9110 §10.2.3). A past date gives 0. */
export function parseRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}

/**
 * The wait that a 429 requests, in milliseconds: the longest of `Retry-After`, `RateLimit: "…";r=0;t=<s>`, the older
 * `RateLimit: limit=…, remaining=0, reset=<s>` and `RateLimit-Reset: <s>`. Undefined if the response names none.
 */
export function rateLimitWaitMs(headers: Headers, nowMs: number): number | undefined {
  const found: number[] = []
  const retryAfter = parseRetryAfter(headerOf(headers, 'retry-after'), nowMs)
  if (retryAfter !== undefined) found.push(retryAfter)
  const reset = headerOf(headers, 'ratelimit-reset')
  if (reset !== undefined && /^\d{1,9}$/.test(reset)) found.push(Number(reset) * 1000)
  const rate = headerOf(headers, 'ratelimit') ?? ''
  // there may be several policies; those with requests left do not matter.
  for (const policy of rate.split(/,(?=\s*")/)) {
    const remaining = /(?:;\s*r|remaining)=(\d{1,9})/.exec(policy)?.[1]
    const wait = /(?:;\s*t|reset)=(\d{1,9})/.exec(policy)?.[1]
    if (wait !== undefined && (remaining === undefined || Number(remaining) === 0)) found.push(Number(wait) * 1000)
  }
  return found.length === 0 ? undefined : Math.max(...found)
}
