import { randomBytes } from 'node:crypto'
import {
  type ActiveFile,
  type ErrorBody,
  type ImportResult,
  isTerminal,
  type Job,
  type JobKind,
  MAX_ACTIVE_FILES,
  type VerifyReport
} from '@svc/client/protocol'
import { DaemonError } from '../errors.ts'
import type { Lanes } from './lanes.ts'

/** Terminal jobs beyond this are dropped, oldest first; running ones never (spec job.12). */
export const KEPT_JOBS = 1000

/** So many jobs may wait or run, and so many files may they list together: listings are held in memory until their job is over. */
export const OPEN_LIMITS = { jobs: 10_000, files: 300_000 } as const

/** What a job is when it is accepted. */
export interface JobStart {
  readonly kind: JobKind
  readonly ref: string
  readonly as?: string
  readonly target?: string
  readonly manifest?: string
  readonly filesTotal?: number
  readonly bytesTotal?: number
}

/** What a finished job adds. */
export interface JobOutcome {
  readonly manifest?: string
  readonly result?: ImportResult
  readonly verify?: VerifyReport
  /** Ends the job as `failed` with this error, the other fields kept. */
  readonly error?: ErrorBody
}

export interface JobProgress {
  readonly filesDone?: number
  readonly filesTotal?: number
  readonly bytesDone?: number
  readonly bytesTotal?: number
  readonly manifest?: string
  /** One line for people about what the job waits for; `undefined` clears it. */
  readonly message?: string | undefined
  /** Files in flight; the first sixteen are shown. */
  readonly files?: readonly ActiveFile[]
  readonly peers?: number
  readonly sources?: number
  readonly rateBytesPerSecond?: number
}

export interface JobContext {
  /** Aborted by a stop of the daemon. */
  readonly signal: AbortSignal
  readonly id: string
  update(progress: JobProgress): void
}

export type JobWork = (context: JobContext) => Promise<JobOutcome>

interface Entry {
  readonly id: string
  /** Files that its listing holds in memory while it is open. */
  readonly listed: number
  snapshot: Job
  settled: Promise<void>
}

/**
 * The daemon's jobs, in memory only (spec job.1, job.10). A published snapshot is frozen and never changes; each change makes a
 * new one. `done` and `failed` are final. Invariant: an entry is in `#open` exactly while its state is not terminal.
 */
export class JobRegistry {
  readonly #entries = new Map<string, Entry>()
  readonly #open = new Set<Entry>()
  readonly #lanes: Lanes
  readonly #limits: Readonly<Record<keyof typeof OPEN_LIMITS, number>>
  readonly #stop = new AbortController()
  readonly #toEnvelope: (error: unknown, job: { readonly id: string; readonly kind: JobKind }) => ErrorBody
  #terminal = 0
  #openFiles = 0

  /** `toEnvelope` turns what a job threw into its `error`, and logs what only the log may have. */
  constructor(
    lanes: Lanes,
    toEnvelope: (error: unknown, job: { readonly id: string; readonly kind: JobKind }) => ErrorBody,
    limits: Readonly<Record<keyof typeof OPEN_LIMITS, number>> = OPEN_LIMITS
  ) {
    this.#lanes = lanes
    this.#limits = limits
    this.#toEnvelope = toEnvelope
  }

  get openCount(): number {
    return this.#open.size
  }

  get(id: string): Job | undefined {
    return this.#entries.get(id)?.snapshot
  }

  /** Newest first. */
  list(): Job[] {
    return [...this.#entries.values()].reverse().map((entry) => entry.snapshot)
  }

  /**
   * Accepts a job; `work` starts as soon as its lane has room, never before the returned snapshot (state `waiting`) exists.
   * `cleanUp` runs in every case before the job is over.
   * @throws DaemonError `E_SHUTTING_DOWN`; `E_RATE_LIMITED` (503) beyond {@link OPEN_LIMITS}
   */
  start(start: JobStart, work: JobWork, cleanUp: () => Promise<void> = async () => undefined): Job {
    if (this.#stop.signal.aborted) {
      throw new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping; try again when it is back')
    }
    this.#requireRoom(start.filesTotal ?? 0)
    const entry = this.#add(start, 'waiting')
    entry.settled = this.#run(entry, work, cleanUp)
    return entry.snapshot
  }

  /** A job that was over when it began (spec job.3, route.7: ensure). */
  settled(start: JobStart, outcome: JobOutcome & JobProgress): Job {
    const entry = this.#add(start, 'waiting')
    const { filesDone, bytesDone } = outcome
    this.#patch(entry, { ...(filesDone !== undefined && { filesDone }), ...(bytesDone !== undefined && { bytesDone }) })
    this.#finish(entry, outcome)
    return entry.snapshot
  }

  /** Cuts what waits or runs: such jobs end `failed` and say so. Resolves when the last one has let go of its files. */
  async stop(): Promise<void> {
    this.#stop.abort(
      new DaemonError(
        'E_ABORTED',
        'the daemon was stopped while this job was under way; start it again, what was verified is kept'
      )
    )
    await Promise.all([...this.#open].map((entry) => entry.settled))
  }

  checkInvariants(): void {
    for (const { snapshot } of this.#entries.values()) {
      const open = [...this.#open].some((entry) => entry.snapshot === snapshot)
      if (open === isTerminal(snapshot))
        throw new Error(`job ${snapshot.id} is ${snapshot.state} and ${open ? 'open' : 'closed'}`)
    }
  }

  #requireRoom(files: number): void {
    if (this.#open.size === 0) return
    if (this.#open.size < this.#limits.jobs && this.#openFiles + files <= this.#limits.files) return
    throw new DaemonError(
      'E_RATE_LIMITED',
      `${this.#open.size} jobs are waiting or running, as many as the daemon takes; try again when some are done`,
      { status: 503 }
    )
  }

  #add(start: JobStart, state: Job['state']): Entry {
    const id = randomBytes(12).toString('hex')
    const { kind, ref, as, target, manifest, filesTotal, bytesTotal } = start
    const snapshot: Job = {
      id,
      ref,
      state,
      createdAt: new Date().toISOString(),
      kind,
      ...(as !== undefined && { as }),
      ...(target !== undefined && { target }),
      ...(manifest !== undefined && { manifest }),
      ...(filesTotal !== undefined && { filesDone: 0, filesTotal }),
      ...(bytesTotal !== undefined && { bytesDone: 0, bytesTotal })
    }
    const entry: Entry = { id, listed: filesTotal ?? 0, snapshot: Object.freeze(snapshot), settled: Promise.resolve() }
    this.#entries.set(id, entry)
    this.#open.add(entry)
    this.#openFiles += entry.listed
    return entry
  }

  async #run(entry: Entry, work: JobWork, cleanUp: () => Promise<void>): Promise<void> {
    let outcome: JobOutcome
    try {
      try {
        outcome = await this.#lanes.run(entry.snapshot.kind, this.#stop.signal, () => this.#work(entry, work))
      } finally {
        await cleanUp()
      }
    } catch (error) {
      outcome = { error: this.#errorOf(entry, error) }
    }
    this.#finish(entry, outcome)
  }

  #work(entry: Entry, work: JobWork): Promise<JobOutcome> {
    this.#patch(entry, { state: 'fetching', startedAt: new Date().toISOString() })
    return work({
      id: entry.id,
      signal: this.#stop.signal,
      update: (progress) => {
        if (!this.#open.has(entry)) return
        const { files, ...rest } = progress
        this.#patch(entry, files === undefined ? rest : { ...rest, files: files.slice(0, MAX_ACTIVE_FILES) })
      }
    })
  }

  #patch(entry: Entry, change: { readonly [K in keyof Job]?: Job[K] | undefined } | JobProgress): void {
    const next = { ...entry.snapshot, ...change } as Record<string, unknown>
    for (const key of Object.keys(next)) if (next[key] === undefined) delete next[key]
    entry.snapshot = Object.freeze(next as unknown as Job)
  }

  #finish(entry: Entry, outcome: JobOutcome): void {
    const { error, result, verify, manifest } = outcome
    this.#patch(entry, {
      state: error === undefined ? 'done' : 'failed',
      finishedAt: new Date().toISOString(),
      ...LIVE_ONLY,
      ...(manifest !== undefined && { manifest }),
      ...(result !== undefined && { result }),
      ...(verify !== undefined && { verify }),
      ...(error !== undefined && { error })
    })
    this.#open.delete(entry)
    this.#openFiles -= entry.listed
    this.#terminal++
    if (this.#terminal > KEPT_JOBS) this.#drop()
  }

  #drop(): void {
    for (const [id, { snapshot }] of this.#entries) {
      if (this.#terminal <= KEPT_JOBS) return
      if (!isTerminal(snapshot)) continue
      this.#entries.delete(id)
      this.#terminal--
    }
  }

  #errorOf(entry: Entry, error: unknown): ErrorBody {
    const { signal } = this.#stop
    // what a cut makes of a job is the cut, whatever the layer that noticed it called it
    const reason = signal.aborted && isAbort(error) ? signal.reason : error
    return this.#toEnvelope(reason, { id: entry.id, kind: entry.snapshot.kind })
  }
}

/** What only a running job shows. */
const LIVE_ONLY = {
  files: undefined,
  message: undefined,
  peers: undefined,
  sources: undefined,
  rateBytesPerSecond: undefined
}

const isAbort = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'AbortError' || (error as { code?: unknown }).code === 'E_ABORTED')
