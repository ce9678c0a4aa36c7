import { ClassifyError } from '@svc/classify'
import { isTerminal, type Job, type JobKind } from '@svc/client/protocol'
import type { CompanionsRequest, Imported, Importer, ImportRequest } from '@svc/library/parts'
import { formatRepoId } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import type { JobOutcome, JobStart } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

export interface ImportStart extends ImportRequest {
  readonly kind: Extract<JobKind, 'import-local' | 'import-hf' | 'import-catalog' | 'import-oci'>
  /** `ref` of the job (spec job.5). */
  readonly ref: string
  /** As in {@link JobStart}. */
  readonly lane?: JobStart['lane']
  /** Stops the planning. */
  readonly signal?: AbortSignal
  /** Equal for requests that import the same bytes in the same way: while one runs, another joins it. */
  readonly same?: string
}

const MAX_SAME = 1_000

/** Planning a listing is bounded by the limits of its source; there is no job yet that could be cancelled. */
const UNSTOPPED = new AbortController().signal

/** Imports as jobs. */
export class ImportJobs {
  readonly #jobs: JobRegistry
  readonly #importer: Pick<Importer, 'plan' | 'bringCompanions'>
  /** Ids of the latest jobs of requests, by what makes them the same. */
  readonly #latest = new LRUCache<string, string>({ max: MAX_SAME })

  constructor(jobs: JobRegistry, importer: Pick<Importer, 'plan' | 'bringCompanions'>) {
    this.#jobs = jobs
    this.#importer = importer
  }

  /**
   * Accepts an import: the listing is checked now. The source is always closed. A request that is the same as one that
   * still runs is answered with that job.
   * @throws as `planListing`, `E_SHUTTING_DOWN`
   */
  async start({ same, ...request }: ImportStart): Promise<Job> {
    const running = same === undefined ? undefined : this.#running(same)
    if (running !== undefined) {
      await request.source.close()
      return running
    }
    const job = await this.#accept(request)
    if (same === undefined) return job
    // another may have been accepted while this one was planned: both run, which costs only their time
    this.#latest.set(same, job.id)
    return job
  }

  #running(same: string): Job | undefined {
    const id = this.#latest.get(same)
    const job = id === undefined ? undefined : this.#jobs.list().find((each) => each.id === id)
    return job === undefined || isTerminal(job) ? undefined : job
  }

  async #accept({ kind, ref, lane, signal = UNSTOPPED, ...request }: Omit<ImportStart, 'same'>): Promise<Job> {
    const { repo, source } = request
    const start = { kind, ref, as: formatRepoId(repo), ...(lane !== undefined && { lane }) }
    try {
      const { filesTotal, bytesTotal, run } = await this.#importer.plan(
        { ...request, ofStranger: lane === 'demand' },
        signal
      )
      return this.#jobs.start(
        { ...start, filesTotal, bytesTotal },
        async (work) => importOutcome(await run(work)),
        () => source.close()
      )
    } catch (error) {
      await source.close()
      if (!(error instanceof ClassifyError) || error.code !== 'E_NOT_IMPORTABLE') throw error
      // the request itself is valid, and that code is for jobs only (spec err.3)
      return this.#jobs.start({ ...start, filesTotal: source.files.length }, () => Promise.reject(error))
    }
  }

  /**
   * Fetches only the companions of an artifact (spec add.49).
   * @throws DaemonError `E_SHUTTING_DOWN`, `E_RATE_LIMITED`
   */
  startCompanions({ ref, ...request }: CompanionsRequest & { readonly ref: string }): Job {
    const start = { kind: 'companions', ref, manifest: request.manifestDigest } as const
    return this.#jobs.start(start, async (work) => ({
      result: await this.#importer.bringCompanions(request, work)
    }))
  }
}

/** The end of a job that imported an artifact. */
export const importOutcome = (imported: Imported): JobOutcome => ({
  manifest: imported.manifests[0]!,
  result: imported
})
