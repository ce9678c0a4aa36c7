/** Bounds on what is taken from a hub and on what is asked of it at once. */
export interface HubLimits {
  /** Entries of a listing, directories included. */
  readonly entries: number
  readonly pages: number
  /** Bytes of one JSON answer. */
  readonly jsonBytes: number
  readonly redirects: number
  /** Parallel range requests for one file. */
  readonly rangesPerFile: number
  /** Parallel range requests for all large files of this hub object. */
  readonly ranges: number
  /** Parallel requests for small files, which do not queue behind the large ones. */
  readonly smallFiles: number
  /** Largest file of the small lane, in bytes. */
  readonly smallFileBytes: number
  /** Size of one range request; 32 to 64 MiB suit long-distance links. */
  readonly rangeBytes: number
  /** Bytes collected before a write to the sink. */
  readonly writeBytes: number
}

export const DEFAULT_LIMITS: HubLimits = {
  entries: 100_000,
  pages: 1_000,
  jsonBytes: 16 * 2 ** 20,
  redirects: 5,
  rangesPerFile: 8,
  ranges: 16,
  smallFiles: 8,
  smallFileBytes: 8 * 2 ** 20,
  rangeBytes: 32 * 2 ** 20,
  writeBytes: 2 ** 20
}

/** How long to go on when the hub is slow, busy or away. Times are in milliseconds. */
export interface RetryTimings {
  /** Tries without progress before giving up. */
  readonly tries: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
  /** Total time spent waiting for a rate limit without progress. */
  readonly maxRateWaitMs: number
  /** No byte for so long is a failed try. */
  readonly stallMs: number
  readonly connectMs: number
  /** In [0, 1): the jitter's source. */
  readonly random: () => number
  /** Wall clock in milliseconds; only read to understand HTTP dates. */
  readonly now: () => number
  readonly sleep: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>
}
