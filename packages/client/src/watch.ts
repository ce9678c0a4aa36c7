import { setTimeout as delay } from 'node:timers/promises'
import type { Job } from './protocol/job.ts'
import { isTerminal } from './protocol/job-state.ts'

const FIRST_INTERVAL_MS = 50
const GROWTH = 1.5

/** How a job is watched. `signal` ends the watching and leaves the job alone. */
export interface WatchOptions {
  readonly signal?: AbortSignal | undefined
  /** Longest time between two polls; they start at 50 ms and get slower. Default 1000. */
  readonly intervalMs?: number | undefined
}

/**
 * Yields snapshots of a job until it is terminal; the terminal one is the last. A job given as a snapshot is yielded first,
 * without a poll.
 *
 * @throws what `poll` throws, e.g. `E_NOT_FOUND` after a restart of the daemon; the signal's reason on abort
 */
export async function* watchJob(
  job: Job | string,
  poll: (id: string, signal?: AbortSignal) => Promise<Job>,
  options: WatchOptions = {}
): AsyncGenerator<Job, void, undefined> {
  const { signal, intervalMs = 1000 } = options
  let pauseMs = Math.min(FIRST_INTERVAL_MS, intervalMs)
  let current = typeof job === 'string' ? await poll(job, signal) : job
  for (;;) {
    yield current
    if (isTerminal(current)) return
    await delay(pauseMs, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
      throw signal?.aborted === true ? signal.reason : error
    })
    pauseMs = Math.min(pauseMs * GROWTH, intervalMs)
    current = await poll(current.id, signal)
  }
}
