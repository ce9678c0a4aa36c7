import { join } from 'node:path'
import { isTerminal, type Job, type JobKind } from '@svc/client/protocol'
import { listFolderIfPresent } from '@svc/internal-files'
import {
  anything,
  type Log,
  oneOf,
  optional,
  type RecordKind,
  type ReplacedFiles,
  StateRecords,
  text
} from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import { DaemonError } from '../errors.ts'
import type { JobRegistry } from './registry.ts'

/** The routes whose requests are remembered. */
const ROUTES = ['ensure', 'importLocal', 'importHf', 'importBt', 'importCatalog', 'importOci'] as const
export type AskedRoute = (typeof ROUTES)[number]

/** Starts the job of a recorded request. */
export type StartAgain = (route: AskedRoute, body: unknown) => Promise<Job>

/** A request, and what its job said of itself. */
interface AskedImport extends Pick<Job, 'ref' | 'as' | 'createdAt'> {
  readonly route: AskedRoute
  readonly body: unknown
  readonly kind: JobKind
}

const RECORD: RecordKind<AskedImport> = {
  folder: 'jobs',
  shape: { route: oneOf(...ROUTES), body: anything, kind: text, ref: text, as: optional(text), createdAt: text },
  decode: (asked) => asked,
  encode: (asked) => asked
}

const FILE = /^[0-9a-f]{24}\.json$/
/** Longer requests are not remembered: they list files, and are typed by no person. */
const MAX_BODY_BYTES = 256 * 1024
/** Requests of failed jobs that can be repeated by their id. */
const MAX_FAILED = 1_000

/**
 * The requests of imports while their jobs run, below `state/jobs`: what a stop or a crash ended is listed after the next
 * start, beside the jobs, and can go on. A request that equals one whose job runs is answered with that job.
 */
export class AskedImports {
  readonly #jobs: JobRegistry
  readonly #records: StateRecords<AskedImport>
  readonly #folder: string
  readonly #log: Log
  /** By the id of the job. */
  readonly #open = new Map<string, AskedImport>()
  readonly #failed = new LRUCache<string, AskedImport>({ max: MAX_FAILED })
  /** Of earlier daemons. */
  readonly #interrupted = new Map<string, AskedImport>()

  constructor(jobs: JobRegistry, files: ReplacedFiles, { root, log }: { readonly root: string; readonly log: Log }) {
    this.#jobs = jobs
    this.#records = new StateRecords(root, files, RECORD)
    this.#folder = join(root, 'state', RECORD.folder)
    this.#log = log
  }

  /** Lists the jobs that the end of an earlier daemon interrupted. */
  async recover(): Promise<void> {
    for (const { name } of await listFolderIfPresent(this.#folder)) {
      if (!FILE.test(name)) continue
      const id = name.slice(0, -'.json'.length)
      const asked = await this.#records.read(name).catch((error: unknown) => {
        this.#log.warn({ err: error, job: id }, 'what an interrupted job was to do cannot be read')
        return undefined
      })
      if (asked === undefined) continue
      this.#interrupted.set(id, asked)
    }
  }

  /** What earlier daemons left unfinished, newest first. */
  interrupted(): Job[] {
    return [...this.#interrupted]
      .map(([id, { kind, ref, as, createdAt }]): Job => {
        const message = `the daemon ended while this job was under way; svc resume ${id} goes on: verified bytes are kept`
        const error = { code: 'E_ABORTED', message } as const
        return { id, kind, ref, ...(as !== undefined && { as }), state: 'failed', createdAt, interrupted: true, error }
      })
      .sort((a, b) => (a.createdAt > b.createdAt ? -1 : 1))
  }

  /** Starts the job of a request, unless the same one runs. @throws as its starter */
  async start<B>(route: AskedRoute, body: B, starter: (body: B) => Promise<Job>): Promise<Job> {
    const same = JSON.stringify([route, body])
    for (const [id, asked] of this.#open)
      if (JSON.stringify([asked.route, asked.body]) === same) return this.#jobs.require(id)
    const job = await starter(body)
    if (isTerminal(job) || this.#open.has(job.id) || same.length > MAX_BODY_BYTES) return job
    const { id, kind, ref, as, createdAt } = job
    const asked: AskedImport = { route, body, kind: kind!, ref, ...(as !== undefined && { as }), createdAt }
    this.#open.set(id, asked)
    const isWritten = await this.#records.write(`${id}.json`, asked).then(
      () => true,
      (error: unknown) => {
        // such as on a full disk, which the job itself will find out
        this.#log.warn({ err: error, job: id }, 'a job is not remembered over a restart')
        return false
      }
    )
    void this.#watch(id, asked, isWritten)
    return job
  }

  async #watch(id: string, asked: AskedImport, isWritten: boolean): Promise<void> {
    const ended = await this.#jobs.over(id)
    this.#open.delete(id)
    // after a stop its record stays for the next start
    if (this.#jobs.isStopped) return
    if (ended.state === 'failed') this.#failed.set(id, asked)
    if (isWritten) await this.#remove(id)
  }

  /**
   * Repeats the request of a job that was interrupted or failed; verified bytes are kept, so that it goes on.
   * @throws DaemonError `E_NOT_FOUND`, `E_BAD_REQUEST`; as its starter
   */
  async resume(id: string, startAgain: StartAgain): Promise<Job> {
    const interrupted = this.#interrupted.get(id)
    const before = interrupted === undefined ? this.#jobs.require(id) : undefined
    if (before !== undefined && !isTerminal(before)) return before
    const asked = interrupted ?? this.#failed.get(id)
    if (asked === undefined)
      throw new DaemonError('E_BAD_REQUEST', `the job ${id} is not an import that failed or was interrupted`)
    const job = await this.start(asked.route, asked.body, (body) => startAgain(asked.route, body))
    await this.forget(id)
    return job
  }

  /** An interrupted job is no longer wanted. @returns what it was; undefined for any other */
  async forget(id: string): Promise<Job | undefined> {
    const job = this.interrupted().find((each) => each.id === id)
    if (this.#interrupted.delete(id)) await this.#remove(id)
    return job
  }

  async #remove(id: string): Promise<void> {
    await this.#records.remove(`${id}.json`).catch((error: unknown) => {
      this.#log.warn({ err: error, job: id }, 'the record of a job cannot be removed')
    })
  }
}
