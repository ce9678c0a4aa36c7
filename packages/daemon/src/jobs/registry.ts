import type { Job } from '@svc/client/protocol'
import { type Clock, systemClock } from '@svc/internal-clock'
import type { RunningWork, WorkProgress } from '@svc/library/parts'
import { DaemonError } from '../errors.ts'
import type { JobOutcome, JobStart, JobWork } from './job-work.ts'
import { Lanes } from './lanes.ts'
import { KEPT_JOBS, Retention } from './retention.ts'
import { type JobErrors, TrackedJob } from './tracked-job.ts'

/** Limits of the jobs that wait or run, and of all files that they list, which stay in memory until their job ends. */
export const OPEN_LIMITS = { jobs: 10_000, files: 300_000 } as const

/** The reason of a job that its owner cancelled, as opposed to one that a stop or a time limit ended. */
export class UnwantedError extends DaemonError {
  constructor() {
    super('E_ABORTED', 'the job was cancelled; start it again: verified bytes are kept')
  }
}

type CleanUp = (aborted: unknown) => Promise<void>

export interface JobRegistryOptions {
  readonly clock?: Clock
  readonly limits?: Readonly<Record<keyof typeof OPEN_LIMITS, number>>
  /** Called with the last snapshot of each successful job. */
  readonly onDone?: (job: Job) => void
  /** Wraps the work of every job. */
  readonly around?: <T>(kind: Job['kind'], work: () => Promise<T>) => Promise<T>
}

/**
 * The daemon's jobs, in memory only (spec job.1): accepts them, runs them in their lanes, and keeps finished ones for a
 * while. `tracked-job.ts` has the states of a single job.
 *
 * Invariant: a job is in `#open` exactly while its state is not terminal; finished ones are in `#retention`.
 */
export class JobRegistry implements RunningWork {
  /** In the order of acceptance. */
  readonly #jobs = new Map<string, { readonly job: TrackedJob; readonly serial: number }>()
  readonly #open = new Map<TrackedJob, Promise<void>>()
  readonly #clock: Clock
  readonly #retention: Retention
  readonly #lanes = new Lanes()
  readonly #toError: JobErrors
  readonly #limits: Readonly<Record<keyof typeof OPEN_LIMITS, number>>
  readonly #onDone: ((job: Job) => void) | undefined
  readonly #around: NonNullable<JobRegistryOptions['around']>
  #stopped: DaemonError | undefined
  #openFiles = 0
  #serial = 0
  readonly #ended = { done: 0, failed: 0 }

  constructor(
    toError: JobErrors,
    { clock = systemClock, limits = OPEN_LIMITS, onDone, around }: JobRegistryOptions = {}
  ) {
    this.#clock = clock
    this.#toError = toError
    this.#limits = limits
    this.#onDone = onDone
    this.#around = around ?? ((_kind, work) => work())
    this.#retention = new Retention(clock)
  }

  get openCount(): number {
    return this.#open.size
  }

  get openLimit(): number {
    return this.#limits.jobs
  }

  /** Number of jobs that have ended since the start, including forgotten ones. */
  get ended(): Readonly<Record<'done' | 'failed', number>> {
    return this.#ended
  }

  /** @throws DaemonError `E_NOT_FOUND` */
  require(id: string): Job {
    return this.#require(id).snapshot
  }

  /** Newest first (spec job.11). */
  list(): Job[] {
    return [...this.#jobs.values()].reverse().map(({ job }) => job.snapshot)
  }

  /** Jobs that wait or run and are about an artifact, as far as they know that yet. */
  openOf(manifest: string): Job[] {
    return [...this.#open.keys()].map(({ snapshot }) => snapshot).filter((job) => job.manifest === manifest)
  }

  /** The job that brings an artifact's blobs, whoever asked for it. */
  fetchOf(manifest: string): Job | undefined {
    return this.openOf(manifest).find(({ kind }) => kind === 'ensure' || kind === 'import-bt')
  }

  /**
   * Accepts a job; `work` starts as soon as its lane has room, but never before the returned snapshot (state `waiting`)
   * exists. `cleanUp` always runs before the job ends, with the reason for which it was aborted, if it was.
   * @throws DaemonError `E_SHUTTING_DOWN`; `E_RATE_LIMITED` (503) beyond {@link OPEN_LIMITS}
   */
  start(start: JobStart, work: JobWork, cleanUp: CleanUp = async () => undefined): Job {
    if (this.#stopped !== undefined) {
      throw new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping; try again when it is back')
    }
    this.#requireRoom(start.filesTotal ?? 0)
    const job = this.#add(start)
    this.#open.set(job, this.#run(job, work, cleanUp))
    return job.snapshot
  }

  /** Adds a job that is already done (spec job.3: ensure of a complete artifact). */
  settled(start: JobStart, progress: Pick<WorkProgress, 'filesDone' | 'bytesDone'>): Job {
    const job = this.#add(start)
    job.update(progress)
    this.#end(job, {})
    return job.snapshot
  }

  /** Whether all jobs were ended because the daemon stops. */
  get isStopped(): boolean {
    return this.#stopped !== undefined
  }

  /** Adds a job that has already failed (spec job.3: ensure of a reference that does not resolve). */
  failed(start: JobStart, error: unknown): Job {
    const job = this.#add(start)
    this.#end(job, { error: this.#toError(error, job.snapshot) })
    return job.snapshot
  }

  /**
   * Ends a job that its owner does not want as `failed` with `E_ABORTED`; verified bytes are kept (spec add.15). Resolves
   * when it has released its files. A job that has ended does not change. @throws DaemonError `E_NOT_FOUND`
   */
  cancel(id: string): Promise<Job> {
    return this.#cut(id, new UnwantedError())
  }

  /** Like {@link cancel}, for a job that its owner may still want. `why` continues "the job". @throws DaemonError `E_NOT_FOUND` */
  giveUp(id: string, why: string): Promise<Job> {
    return this.#cut(id, new DaemonError('E_ABORTED', `the job ${why}; start it again: verified bytes are kept`))
  }

  async #cut(id: string, reason: DaemonError): Promise<Job> {
    const job = this.#require(id)
    job.cut(reason)
    await this.#open.get(job)
    return job.snapshot
  }

  /** Resolves with the last snapshot of a job when it is over. @throws DaemonError `E_NOT_FOUND` */
  async over(id: string): Promise<Job> {
    const job = this.#require(id)
    await this.#open.get(job)
    return job.snapshot
  }

  /** Ends all jobs as `failed` with that reason. Resolves when the last one has released its files. */
  async stop(): Promise<void> {
    this.#stopped ??= new DaemonError(
      'E_ABORTED',
      'the daemon was stopped while this job was under way; start it again: verified bytes are kept'
    )
    for (const job of this.#open.keys()) job.cut(this.#stopped)
    await Promise.all(this.#open.values())
  }

  #require(id: string): TrackedJob {
    const job = this.#jobs.get(id)?.job
    if (job !== undefined) return job
    const shown = JSON.stringify(id.slice(0, 100))
    throw new DaemonError('E_NOT_FOUND', `there is no job ${shown}; jobs are lost when the daemon restarts`)
  }

  #requireRoom(files: number): void {
    if (this.#open.size === 0) return
    if (this.#open.size < this.#limits.jobs && this.#openFiles + files <= this.#limits.files) return
    throw new DaemonError(
      'E_RATE_LIMITED',
      `${this.#open.size} jobs are waiting or running, which is the limit; try again when some are done`,
      { status: 503 }
    )
  }

  #add(start: JobStart): TrackedJob {
    const job = new TrackedJob(start, this.#clock)
    this.#jobs.set(job.id, { job, serial: ++this.#serial })
    this.#open.set(job, Promise.resolve())
    this.#openFiles += job.listedFiles
    return job
  }

  async #run(job: TrackedJob, work: JobWork, cleanUp: CleanUp): Promise<void> {
    let outcome: JobOutcome
    try {
      try {
        outcome = await this.#lanes.run(job.lane, job.signal, () => {
          job.begin()
          const report = (progress: WorkProgress): void => job.update(progress)
          return this.#around(job.snapshot.kind, () => work({ id: job.id, signal: job.signal, report }))
        })
      } finally {
        await cleanUp(job.signal.aborted ? job.signal.reason : undefined)
      }
    } catch (error) {
      outcome = { error: this.#toError(job.reasonOf(error), job.snapshot) }
    }
    this.#end(job, outcome)
  }

  #end(job: TrackedJob, outcome: JobOutcome): void {
    job.end(outcome)
    this.#ended[outcome.error === undefined ? 'done' : 'failed']++
    this.#open.delete(job)
    this.#openFiles -= job.listedFiles
    const newest = ({ id }: TrackedJob): boolean => this.#jobs.get(id)!.serial > this.#serial - KEPT_JOBS
    for (const dropped of this.#retention.keep(job, newest)) this.#jobs.delete(dropped.id)
    if (outcome.error === undefined) this.#onDone?.(job.snapshot)
  }
}
