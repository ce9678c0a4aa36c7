import type { TrackedJob } from './tracked-job.ts'

/** So many jobs that are over stay at least: the newest, and those that ended last (spec job.12). */
export const KEPT_JOBS = 1_000

/** A job that is over stays for this long, so that whoever polls it sees how it ended. */
export const MIN_KEPT_MS = 300_000

/** Whatever their age: a few KB each. */
export const MAX_KEPT_JOBS = 10_000

interface Ended {
  readonly job: TrackedJob
  /** When it ended, on the clock of {@link Retention}. */
  readonly at: number
}

/**
 * Which of the jobs that are over are kept. A long one ends after many that began later, so what counts is the time of its end:
 * by the order of beginning it would vanish in the moment it is over, before anybody has seen its result.
 */
export class Retention {
  /** In the order in which they ended. */
  readonly #ended: Ended[] = []
  readonly #nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  get count(): number {
    return this.#ended.length
  }

  /**
   * Takes in a job that just ended. @returns those that are dropped instead.
   * @param newest whether a job is among the newest {@link KEPT_JOBS} that were accepted
   */
  keep(job: TrackedJob, newest: (job: TrackedJob) => boolean): TrackedJob[] {
    const now = this.#nowMs()
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
