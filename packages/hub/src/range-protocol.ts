import type { BlockHashing } from './sink.ts'

/** One range that a thread fetches into a file. All that it is told was decided elsewhere: it follows no redirect and tries nothing again. */
export interface RangeJob {
  readonly url: string
  /** Sent as they are, beside `host` and `range`. */
  readonly headers: Readonly<Record<string, string>>
  readonly start: number
  readonly end: number
  readonly sizeBytes: number
  readonly fd: number
  readonly hashing: BlockHashing | undefined
  /** Names are not connected to where they are resolved to an inner address. */
  readonly guarded: boolean
  readonly connectMs: number
  readonly stallMs: number
}

/** The head comes first, then what was written, in order. */
export type RangeProgress =
  | { readonly headers: Readonly<Record<string, string>> }
  | { readonly start: number; readonly end: number; readonly hashes: Uint8Array | undefined }

/** `unwritable`: the file could not be written to. Others: see `RangeOutcome`. */
export type RangeReply = 'done' | 'status' | 'form' | 'unwritable'

export interface RangeCalls {
  fetch: { request: RangeJob; response: RangeReply; progress: RangeProgress }
}
