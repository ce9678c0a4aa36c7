export {
  Backoff,
  type BackoffTimings,
  backoffMs,
  DEFAULT_BACKOFF,
  DownloadError,
  type DownloadErrorKind,
  type RetryWait
} from './backoff.ts'
export { BodyRangeError, type ByteSpan, bodyRange } from './body-range.ts'
export { HttpClient, type HttpClientOptions } from './client.ts'
export { diskErrorOf, unloadedCode } from './disk-error.ts'
export { download, ForgetfulSinkError, type RangeSink, type RangeSource, SinkFailure } from './download.ts'
export { type Headers, headerOf, isIdentity, parseRetryAfter, rateLimitWaitMs } from './headers.ts'
export { isObject, JsonExcessError, type JsonOptions, jsonExcess, own, parseJson } from './json.ts'
export { leastBytesIn, SLOW_MS } from './min-rate.ts'
export { type HostTurn, Paces } from './pace.ts'
export { followRedirects, RedirectError, type Redirecting } from './redirect.ts'
export type { Response } from './response.ts'
export { encodePath, encodeSegment } from './url-path.ts'
