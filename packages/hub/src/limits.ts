import { systemClock } from '@svc/internal-clock'
import { type BackoffTimings, DEFAULT_BACKOFF, SLOW_MS } from '@svc/internal-http'

/** Limits on what is accepted from a hub, and on concurrent requests to it. */
export interface HubLimits {
  /** Entries of a listing, directories included. */
  readonly entries: number
  readonly pages: number
  /** Bytes of one JSON response. */
  readonly jsonBytes: number
  /** Bytes of all JSON responses of one listing. */
  readonly listingBytes: number
  readonly redirects: number
  /** Parallel range requests for one file. */
  readonly rangesPerFile: number
  /** Parallel range requests for all large files of this hub object. */
  readonly ranges: number
  /** Parallel requests for small files, which need not queue behind the large ones. */
  readonly smallFiles: number
  /**
   * Parallel requests to a host of which nothing is known. There are more while they bring more, up to `ranges` and `smallFiles`, and fewer
   * where the host refuses some, or is faster so.
   */
  readonly firstRequests: number
  /** Largest file that counts as small, in bytes. */
  readonly smallFileBytes: number
  /** Size of one range request; 32 to 64 MiB suit links with a long round trip. */
  readonly rangeBytes: number
  /** Bytes collected before a write to the sink. */
  readonly writeBytes: number
}

export const DEFAULT_LIMITS: HubLimits = {
  entries: 100_000,
  pages: 1_000,
  jsonBytes: 16 * 2 ** 20,
  listingBytes: 512 * 2 ** 20,
  redirects: 5,
  rangesPerFile: 8,
  ranges: 16,
  smallFiles: 8,
  firstRequests: 4,
  smallFileBytes: 8 * 2 ** 20,
  rangeBytes: 32 * 2 ** 20,
  writeBytes: 2 ** 20
}

/** How long to keep trying when the hub is slow, busy or unreachable. Times are in milliseconds. */
export interface RetryTimings extends BackoffTimings {
  /** Time without a byte after which an attempt counts as failed. */
  readonly stallMs: number
  /**
   * In each of these spans a source must send 1 KiB for each second, or the attempt counts as failed; what a failed attempt
   * brought gives new attempts only at that rate.
   */
  readonly slowMs: number
  readonly connectMs: number
  /** Wall clock in milliseconds, used only to interpret HTTP dates. */
  readonly now: () => number
}

export const DEFAULT_TIMINGS: RetryTimings = {
  ...DEFAULT_BACKOFF,
  stallMs: 30_000,
  slowMs: SLOW_MS,
  connectMs: 10_000,
  now: systemClock.now
}
