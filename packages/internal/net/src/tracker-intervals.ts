/** Between announces, whatever a tracker asks for. */
const MIN_INTERVAL_MS = 1_000
const MAX_INTERVAL_MS = 86_400_000
const DEFAULT_INTERVAL_MS = 1_800_000

/** The part of a `bittorrent-tracker` client that is bounded here. */
export interface TrackerTimers {
  readonly _trackers: readonly { setInterval(ms?: number): void }[]
}

/**
 * The client gives what a tracker asks for to a timer as it is; a timer takes a number beyond 2^31, or none at all, for a
 * millisecond: one hostile answer would become a flood of announces.
 */
export function boundIntervals(client: TrackerTimers): void {
  for (const tracker of client._trackers) {
    const set = tracker.setInterval
    tracker.setInterval = (ms) => set.call(tracker, ms === undefined ? undefined : boundedInterval(ms))
  }
}

const boundedInterval = (ms: number): number =>
  Number.isFinite(ms) ? Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, ms)) : DEFAULT_INTERVAL_MS
