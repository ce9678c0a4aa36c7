import { type Clock, systemClock } from '@svc/internal-clock'
import type { Job } from './protocol/job.ts'
import { isTerminal } from './protocol/job-state.ts'

const FIRST_INTERVAL_MS = 50
const GROWTH = 1.5

/** Options of watching a job. `signal` ends the watching, not the job. */
export interface WatchOptions {
  readonly signal?: AbortSignal | undefined
  /** Longest time between two polls; they start at 50 ms and become less frequent. Default 1000. */
  readonly intervalMs?: number | undefined
}

/**
 * Yields snapshots of a job until the terminal one; a given snapshot first, without a poll. @throws errors of `poll`,
 * e.g. `E_NOT_FOUND` after a restart of the daemon; the signal's reason on abort
 */
export async function* watchJob(
  job: Job | string,
  poll: (id: string, signal?: AbortSignal) => Promise<Job>,
  options: WatchOptions = {},
  clock: Pick<Clock, 'sleep'> = systemClock
): AsyncGenerator<Job, void, undefined> {
  const { signal, intervalMs = 1000 } = options
  let pauseMs = Math.min(FIRST_INTERVAL_MS, intervalMs)
  let current = typeof job === 'string' ? await poll(job, signal) : job
  for (;;) {
    yield current
    if (isTerminal(current)) return
    await clock.sleep(pauseMs, signal)
    pauseMs = Math.min(pauseMs * GROWTH, intervalMs)
    current = await poll(current.id, signal)
  }
}
