import type { Headers, HttpClientOptions } from '@svc/internal-http'
import type { DialPolicy } from '@svc/internal-net'

/**
 * One range that a thread fetches into a file. All decisions were made by the caller: the thread follows no redirects
 * and does not retry.
 */
export interface RangeJob {
  readonly url: string
  /** Sent in addition to `range`. */
  readonly headers: Readonly<Record<string, string>>
  readonly start: number
  readonly end: number
  readonly sizeBytes: number
  readonly fd: number
  /** See `DirectSink`. */
  readonly writeGate?: Int32Array | undefined
  readonly policy: DialPolicy
}

/** Start parameters of a thread. */
export interface RangeThreadData {
  readonly nice: number
  readonly client: Omit<HttpClientOptions, 'dispatcher'>
}

/** First the head, then the written ranges, in order. */
export type RangeProgress = { readonly headers: Headers } | { readonly start: number; readonly end: number }

/** `other`: an answer without the bytes of the range, of which nothing was written. `unwritable`: writing to the file failed. */
export type RangeReply = 'done' | 'other' | 'unwritable'

export interface RangeCalls {
  fetch: { request: RangeJob; response: RangeReply; progress: RangeProgress }
}
