import type { Job } from '@svc/client/protocol'
import type { DayBudget, Spending } from './day-budget.ts'
import type { Arrival } from './growing-blob.ts'
import { later, NotNowError, type UpstreamJobs } from './upstream.ts'

/** Limit of concurrent jobs that clients caused, of each kind of mirror. */
const MAX_JOBS = 4
/** After a failure, the same thing is not tried again within this time. */
const FAILED_MS = 30_000
const MAX_FAILED = 1_000

/** The daemon's objects that this uses. */
export interface DemandJobsDeps {
  readonly jobs: UpstreamJobs
  /** A monotonic clock. */
  readonly nowMs: () => number
  readonly day: DayBudget
  readonly timeoutMs: number
  /** Where they fetch from, for messages. */
  readonly source: string
  /** Bad bytes show only when a whole file is here, and are gone then: they cost what the job was to cost. */
  readonly isVerifiedLate: boolean
}

/** Something that a client asks for and a job brings in. */
export interface Demanded {
  /** Bytes that would have to be fetched now. Asked again after a failure: what is still to be fetched has cost nothing. */
  missingBytes(): Promise<number>
  start(): Promise<Job>
}

/** Jobs that clients cause: each at most once at a time, not too many, not too often, and within the bytes of a day. */
export class DemandJobs {
  readonly #deps: DemandJobsDeps
  readonly #open = new Map<string, Promise<Arrival>>()
  readonly #failed = new Map<string, { readonly atMs: number; readonly error: Error }>()
  #total = 0

  constructor(deps: DemandJobsDeps) {
    this.#deps = deps
  }

  /** Number of jobs under way. */
  get count(): number {
    return this.#open.size
  }

  /** Limit of {@link count}. */
  get limit(): number {
    return MAX_JOBS
  }

  /** Number of jobs that were started. */
  get total(): number {
    return this.#total
  }

  /** What brings it in; undefined if nothing of this does. */
  of(key: string): Promise<Arrival> | undefined {
    return this.#open.get(key)
  }

  /** {@link of}, or else it is started. @throws NotNowError */
  async bring(key: string, demanded: Demanded): Promise<Arrival> {
    const known = this.#open.get(key)
    if (known !== undefined) return known
    this.requireNoFailure(key)
    if (this.#open.size >= MAX_JOBS) throw later('as many models as may be are being fetched', 10)
    // recorded before anything is awaited, so that concurrent requests find it
    const bringing = this.#bring(key, demanded)
    this.#open.set(key, bringing)
    return bringing
  }

  /** @throws NotNowError if it has just {@link fail | failed} */
  requireNoFailure(key: string): void {
    const failed = this.#failed.get(key)
    if (failed === undefined) return
    if (this.#deps.nowMs() - failed.atMs < FAILED_MS) throw this.#unavailable(failed.error)
    this.#failed.delete(key)
  }

  /** For some time it is not tried again. */
  fail(key: string, error: Error): void {
    if (this.#failed.size >= MAX_FAILED) this.#failed.clear()
    this.#failed.set(key, { atMs: this.#deps.nowMs(), error })
  }

  /** Spends bytes of the day. @throws NotNowError */
  spend(sizeBytes: number): Spending {
    const spending = this.#deps.day.trySpend(sizeBytes)
    if (spending !== undefined) return spending
    throw new NotNowError(507, 'E_NO_SPACE', 'this mirror fetches no more on demand today ([mirror] on_demand_bytes)')
  }

  /** The error for a client of something that could not be had. */
  readonly toNotNow = (error: unknown): NotNowError => {
    if (error instanceof NotNowError) return error
    return (error as { code?: unknown }).code === 'E_RATE_LIMITED'
      ? later('as much as may be is being fetched', 30)
      : this.#unavailable(error as Error)
  }

  #unavailable({ message }: Error): NotNowError {
    return new NotNowError(503, 'E_SOURCE_UNAVAILABLE', `${this.#deps.source} did not give it: ${message}`, 30)
  }

  async #bring(key: string, demanded: Demanded): Promise<Arrival> {
    let spending: Spending | undefined
    try {
      spending = this.spend(await demanded.missingBytes())
      const job = await demanded.start()
      this.#total++
      return { over: this.#over(key, job, demanded, spending) }
    } catch (error) {
      this.#open.delete(key)
      spending?.giveBack(Infinity)
      throw this.toNotNow(error)
    }
  }

  /** @returns when it is over, why it failed */
  async #over(key: string, { id }: Job, { missingBytes }: Demanded, spending: Spending): Promise<Error | undefined> {
    const { jobs, isVerifiedLate } = this.#deps
    const stopTimer = this.#limit(id)
    try {
      const job = await jobs.over(id).finally(stopTimer)
      const error = failureOf(job)
      if (error === undefined) return undefined
      this.fail(key, error)
      if (!isVerifiedLate || job.error?.code !== 'E_NOT_IMPORTABLE') spending.giveBack(await missingBytes())
      return error
    } catch (error) {
      return error as Error
    } finally {
      this.#open.delete(key)
    }
  }

  /** Ends a job that takes too long, unless somebody else wants the same artifact, and would only have to begin again. */
  #limit(id: string): () => void {
    const { jobs, timeoutMs } = this.#deps
    const timer = setInterval(() => {
      const { manifest } = jobs.require(id)
      if (manifest !== undefined && jobs.openOf(manifest).some((other) => other.id !== id)) return
      void jobs.timeOut(id).catch(() => undefined)
    }, timeoutMs).unref()
    return () => clearInterval(timer)
  }
}

/** Why a job failed, when it is over. */
export const failureOf = ({ error }: Job): Error | undefined =>
  error === undefined ? undefined : new Error(error.message)
