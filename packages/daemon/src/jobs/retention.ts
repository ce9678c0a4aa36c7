import type { Clock } from '@svc/internal-clock'
import type { TrackedJob } from './tracked-job.ts'

/** At least this many finished jobs are kept: the newest, and those that ended last (spec job.12). */
export const KEPT_JOBS = 1_000

/** A finished job is kept at least this long, so that pollers see how it ended. */
export const MIN_KEPT_MS = 300_000

/** Upper limit, whatever their age: a few KB each. */
export const MAX_KEPT_JOBS = 10_000

interface Ended {
  readonly job: TrackedJob
  /** When it ended, by the clock of {@link Retention}. */
  readonly at: number
}

/**
 * Which finished jobs are kept. The time of its end counts: by order of acceptance, a long job would vanish the
 * moment it ends, before anybody saw its result.
 */
export class Retention {
  /** In the order of their ends. */
  readonly #ended: Ended[] = []
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Adds a job that just ended. @returns the jobs to drop instead.
   * @param newest whether a job is among the newest {@link KEPT_JOBS} that were accepted
   */
  keep(job: TrackedJob, newest: (job: TrackedJob) => boolean): TrackedJob[] {
    const now = this.#clock.monotonic()
    this.#ended.push({ job, at: now })
    const surplus = this.#ended.length - KEPT_JOBS
    const forced = this.#ended.length - MAX_KEPT_JOBS
    const kept: Ended[] = []
    const dropped: TrackedJob[] = []
    let seen = 0
    for (; seen < surplus; seen++) {
      const each = this.#ended[seen]!
      const old = now - each.at >= MIN_KEPT_MS
      if (seen < forced || (old && !newest(each.job))) dropped.push(each.job)
      else if (old) kept.push(each)
      else break
    }
    if (dropped.length > 0) this.#ended.splice(0, seen, ...kept)
    return dropped
  }
}
