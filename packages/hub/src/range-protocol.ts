import type { DialPolicy } from '@svc/internal-net'
import type { BlockHashing } from './sink.ts'

/**
 * One range that a thread fetches into a file. All decisions were made by the caller: the thread follows no redirects
 * and does not retry.
 */
export interface RangeJob {
  readonly url: string
  /** Sent unchanged, in addition to `host` and `range`. */
  readonly headers: Readonly<Record<string, string>>
  readonly start: number
  readonly end: number
  readonly sizeBytes: number
  readonly fd: number
  readonly hashing: BlockHashing | undefined
  /** See `DirectSink`. */
  readonly writeGate?: Int32Array | undefined
  readonly policy: DialPolicy
  readonly connectMs: number
  readonly stallMs: number
  readonly slowMs: number
}

/** Start parameters of a thread. */
export interface RangeThreadData {
  readonly nice: number
}

/** First the head, then the written ranges, in order. */
export type RangeProgress =
  | { readonly headers: Readonly<Record<string, string>> }
  | { readonly start: number; readonly end: number; readonly hashes: Uint8Array | undefined }

/** `unwritable`: writing to the file failed. Others: see `RangeOutcome`. */
export type RangeReply = 'done' | 'status' | 'form' | 'unwritable'

export interface RangeCalls {
  fetch: { request: RangeJob; response: RangeReply; progress: RangeProgress }
}
