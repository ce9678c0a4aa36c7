import type { DialPolicy } from '@svc/internal-net'

/**
 * One range that a thread fetches into a file. The caller makes all decisions: the thread follows no redirects and does
 * not retry.
 */
export interface RangeJob {
  readonly url: string
  /** Sent unchanged, in addition to `host` and `range`. */
  readonly headers: Readonly<Record<string, string>>
  readonly start: number
  readonly end: number
  readonly sizeBytes: number
  readonly fd: number
  /** See `DirectSink`. */
  readonly writeGate?: Int32Array | undefined
  readonly policy: DialPolicy
  readonly connectMs: number
  readonly stallMs: number
  readonly slowMs: number
}

export interface RangeThreadData {
  readonly nice: number
  /** Of the limit of downloads, if there is one. */
  readonly limit: SharedArrayBuffer | undefined
}

/** First the head, then the written ranges, in order. */
export type RangeProgress =
  | { readonly headers: Readonly<Record<string, string>> }
  | { readonly start: number; readonly end: number }

/** `unwritable`: writing to the file failed. Others: see `RangeOutcome`. */
export type RangeReply = 'done' | 'status' | 'form' | 'unwritable'

export interface RangeCalls {
  fetch: { request: RangeJob; response: RangeReply; progress: RangeProgress }
}
