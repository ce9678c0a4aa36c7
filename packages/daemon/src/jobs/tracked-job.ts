import { randomBytes } from 'node:crypto'
import { type ErrorBody, isTerminal, type Job, MAX_ACTIVE_FILES } from '@svc/client/protocol'
import { type Clock, timestampOf } from '@svc/internal-clock'
import type { WorkProgress } from '@svc/library/parts'
import type { JobOutcome, JobStart } from './job-work.ts'

/** Fields that only a running job has. */
const LIVE_ONLY = {
  files: undefined,
  message: undefined,
  warnings: undefined,
  peers: undefined,
  sources: undefined,
  rateBytesPerSecond: undefined
}

/**
 * One job: the snapshot that clients see, its progress, and its end.
 *
 * `waiting` → `fetching` → `done` or `failed` (spec job.3). Snapshots are frozen; each change creates a new one (spec
 * job.10). A terminal state is final, even if progress is still reported.
 */
export class TrackedJob {
  readonly id: string = randomBytes(12).toString('hex')
  /** Files whose listing it holds in memory while it is open. */
  readonly listedFiles: number
  readonly lane: JobStart['kind'] | 'demand'
  readonly #clock: Clock
  readonly #cancel = new AbortController()
  #snapshot: Job

  constructor({ kind, ref, as, target, manifest, dryRun, filesTotal, bytesTotal, lane }: JobStart, clock: Clock) {
    this.#clock = clock
    this.listedFiles = filesTotal ?? 0
    this.lane = lane ?? kind
    this.#snapshot = Object.freeze({
      id: this.id,
      ref,
      state: 'waiting',
      createdAt: timestampOf(clock),
      kind,
      ...(as !== undefined && { as }),
      ...(target !== undefined && { target }),
      ...(manifest !== undefined && { manifest }),
      ...(dryRun === true && { dryRun }),
      ...(filesTotal !== undefined && { filesDone: 0, filesTotal }),
      ...(bytesTotal !== undefined && { bytesDone: 0, bytesTotal })
    })
  }

  get snapshot(): Job {
    return this.#snapshot
  }

  /** Aborted, with the reason, when the job is cancelled or the daemon stops. */
  get signal(): AbortSignal {
    return this.#cancel.signal
  }

  /** Asks the job to end. Only the first reason counts. */
  cut(reason: Error): void {
    this.#cancel.abort(reason)
  }

  begin(): void {
    this.#patch({ state: 'fetching', startedAt: timestampOf(this.#clock) })
  }

  update({ files, warnings, ...rest }: WorkProgress): void {
    this.#patch({
      ...rest,
      ...(warnings !== undefined && { warnings: [...warnings] }),
      ...(files !== undefined && { files: files.slice(0, MAX_ACTIVE_FILES) })
    })
  }

  /** The only place where a job ends. */
  end({ error, result, verify, manifest }: JobOutcome): void {
    this.#patch({
      state: error === undefined ? 'done' : 'failed',
      finishedAt: timestampOf(this.#clock),
      ...LIVE_ONLY,
      ...(manifest !== undefined && { manifest }),
      ...(result !== undefined && { result: result as Job['result'] }),
      ...(verify !== undefined && { verify }),
      ...(error !== undefined && { error })
    })
  }

  /** An aborted job fails with the reason of the abort, whatever error the interrupted code threw. */
  reasonOf(error: unknown): unknown {
    return this.signal.aborted && isAbort(error) ? this.signal.reason : error
  }

  #patch(change: { readonly [K in keyof Job]?: Job[K] | undefined }): void {
    if (isTerminal(this.#snapshot)) return
    const next = { ...this.#snapshot, ...change } as Record<string, unknown>
    for (const key of Object.keys(next)) if (next[key] === undefined) delete next[key]
    this.#snapshot = Object.freeze(next as unknown as Job)
  }
}

/** Converts a job's error for its `error` field, and logs details that are for the log only. */
export type JobErrors = (error: unknown, job: Pick<Job, 'id' | 'kind'>) => ErrorBody

const isAbort = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || (error as { code?: unknown }).code === 'E_ABORTED')
