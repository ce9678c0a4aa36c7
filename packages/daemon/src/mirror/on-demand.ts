import { setTimeout as delay } from 'node:timers/promises'
import type { DiskBlobStore } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import { Gate } from '@svc/internal-concurrency'
import type { OnDemandConfig } from '../config/config.ts'
import type { Log } from '../log.ts'
import { DayBudget } from './day-budget.ts'
import { type Arrival, GrowingBlob } from './growing-blob.ts'
import { Lookups } from './lookups.ts'
import {
  later,
  NotNowError,
  type Upstream,
  type UpstreamFile,
  type UpstreamJobs,
  type UpstreamRepo
} from './upstream.ts'

/** Some official clients wait only ten seconds for the head of a response. */
const ANSWER_MS = 8_000
/** A response from the store waits no longer than this to find out what else the hub has. */
const BRIEF_MS = 2_000
/** Limit of concurrent imports of artifacts. */
const MAX_IMPORTS = 4
/** After a failure, the same thing is not tried again within this time. */
const FAILED_MS = 30_000
/** Limit of small files cached in memory, in total. */
const MAX_SMALL_BYTES = 64 << 20
/** Limit of concurrent fetches of small files. */
const MAX_READS = 2
const MAX_READS_WAITING = 64

/** The daemon's objects that importing on demand uses. */
export interface OnDemandDeps {
  readonly upstream: Upstream
  readonly jobs: UpstreamJobs
  readonly store: DiskBlobStore
  readonly log: Log
  /** A monotonic clock; default: the process's. */
  readonly nowMs?: () => number
  /** Default: its own, of the configured size. */
  readonly day?: DayBudget
}

interface Import extends Arrival {
  readonly job: string
}

/** Figures for the metrics. */
export interface OnDemandFigures {
  readonly imports: number
  readonly importsLimit: number
  readonly importsTotal: number
  readonly lookupsTotal: number
  readonly dayBytes: number
  readonly dayBytesLimit: number
}

/**
 * Fetches what a client of the hub mirror requests and the store lacks (spec add.34): small files alone and into memory
 * only, a large one with its artifact, by an ordinary import. Concurrent requests for the same thing share one fetch.
 */
export class OnDemand {
  readonly #deps: OnDemandDeps
  readonly #config: OnDemandConfig
  readonly #nowMs: () => number
  readonly #lookups: Lookups
  readonly #day: DayBudget
  readonly #imports = new Map<string, Import>()
  readonly #failed = new Map<string, { readonly atMs: number; readonly error: Error }>()
  readonly #small = new Map<string, Uint8Array>()
  readonly #reading = new Map<string, Promise<Uint8Array>>()
  readonly #reads = new Gate(MAX_READS)
  #smallBytes = 0
  #importsTotal = 0

  constructor(deps: OnDemandDeps, config: OnDemandConfig) {
    this.#deps = deps
    this.#config = config
    this.#nowMs = deps.nowMs ?? (() => performance.now())
    this.#lookups = new Lookups({ ...deps, nowMs: this.#nowMs })
    this.#day = deps.day ?? new DayBudget(config.bytesPerDay, this.#nowMs)
  }

  figures(): OnDemandFigures {
    return {
      imports: this.#imports.size,
      importsLimit: MAX_IMPORTS,
      importsTotal: this.#importsTotal,
      lookupsTotal: this.#lookups.total,
      dayBytes: this.#day.spentBytes(),
      dayBytesLimit: this.#config.bytesPerDay
    }
  }

  /** Whether a repository may be fetched at all. */
  allows(repo: string): boolean {
    return allowsName(this.#config, repo)
  }

  /**
   * The upstream repository, or undefined if there is none that may be shared. With `isBrief` a silent or refusing hub
   * is not an error, since there is a response without it.
   * @throws NotNowError
   */
  async look(repo: string, revision: string | undefined, isBrief: boolean): Promise<UpstreamRepo | undefined> {
    if (!this.allows(repo)) return undefined
    try {
      return await inTime(this.#lookups.look(repo, revision), isBrief ? BRIEF_MS : ANSWER_MS, 'the hub is being asked')
    } catch (error) {
      if (isBrief && error instanceof NotNowError) return undefined
      throw error
    }
  }

  /** The bytes of a small file. @throws NotNowError */
  async small(repo: UpstreamRepo, { name, sizeBytes }: UpstreamFile): Promise<Uint8Array> {
    const key = `${repo.repo} ${repo.commit} ${name}`
    const known = this.#small.get(key)
    if (known !== undefined) return known
    let reading = this.#reading.get(key)
    if (reading === undefined) {
      if (this.#reading.size >= MAX_READS_WAITING) throw later('others are being served first')
      this.#spend(sizeBytes)
      reading = this.#readSmall(key, repo, name)
      this.#reading.set(key, reading)
      reading.catch(() => undefined).finally(() => this.#reading.delete(key))
    }
    return inTime(reading, ANSWER_MS, `${name} is being fetched`)
  }

  /** A large file that can be read as it arrives; resolves when its first byte is there. @throws NotNowError */
  async large(repo: UpstreamRepo, file: UpstreamFile, offset: number): Promise<GrowingBlob> {
    const { sha256: digest, sizeBytes } = file
    const { store } = this.#deps
    if (digest === undefined) throw new Error(`${file.name} has no SHA-256`)
    const begunMs = this.#nowMs()
    const arrival =
      (await store.stat(digest)) === undefined
        ? await inTime(this.#arrivalOf(repo, file), ANSWER_MS, `${file.name} is being looked for`)
        : { over: Promise.resolve(undefined) }
    const blob = new GrowingBlob(store, { digest, sizeBytes }, arrival)
    if (await blob.begins(offset, Math.max(1, ANSWER_MS - (this.#nowMs() - begunMs)))) return blob
    await blob.close()
    throw later(`${file.name} is being fetched`)
  }

  async #arrivalOf(repo: UpstreamRepo, { name }: UpstreamFile): Promise<Arrival> {
    const { upstream } = this.#deps
    const { quant, missingBytes } = await upstream.artifactOf(repo, name).catch(unavailable)
    const key = `${repo.repo} ${repo.commit} ${quant}`
    const known = this.#imports.get(key)
    if (known !== undefined) return known
    const failed = this.#failed.get(key)
    if (failed !== undefined && this.#nowMs() - failed.atMs < FAILED_MS) throw unavailableNow(failed.error)
    this.#failed.delete(key)
    if (this.#imports.size >= MAX_IMPORTS) throw later('as many models as may be are being fetched', 10)
    this.#spend(missingBytes)
    // recorded before anything is awaited, so that concurrent requests find it
    const started = this.#start(key, repo, quant)
    this.#imports.set(key, { job: '', over: started.then(({ over }) => over).catch((error: Error) => error) })
    try {
      return await started
    } catch (error) {
      this.#imports.delete(key)
      return unavailable(error)
    }
  }

  async #start(key: string, repo: UpstreamRepo, quant: string): Promise<Import> {
    const { upstream, jobs, log } = this.#deps
    const { id } = await upstream.bring(repo, quant)
    this.#importsTotal++
    log.info(
      { job: id, repo: repo.repo, commit: repo.commit, quant },
      'a client of the mirror asked for what is not here'
    )
    const timer = setTimeout(() => void jobs.cancel(id).catch(() => undefined), this.#config.timeoutMs).unref()
    const over = jobs
      .over(id)
      .then(failureOf, (error: Error) => error)
      .then((error) => {
        clearTimeout(timer)
        this.#imports.delete(key)
        if (error !== undefined) this.#fail(key, error)
        return error
      })
    return { job: id, over }
  }

  #fail(key: string, error: Error): void {
    if (this.#failed.size >= 1_000) this.#failed.clear()
    this.#failed.set(key, { atMs: this.#nowMs(), error })
  }

  #spend(sizeBytes: number): void {
    if (this.#day.trySpend(sizeBytes)) return
    throw new NotNowError(507, 'E_NO_SPACE', 'this mirror fetches no more on demand today ([mirror] on_demand_bytes)')
  }

  #readSmall(key: string, repo: UpstreamRepo, name: string): Promise<Uint8Array> {
    return this.#reads.run(undefined, async () => {
      const bytes = await this.#deps.upstream.read(repo, name).catch(unavailable)
      this.#keep(key, bytes)
      return bytes
    })
  }

  #keep(key: string, bytes: Uint8Array): void {
    this.#small.set(key, bytes)
    this.#smallBytes += bytes.length
    for (const [oldest, { length }] of this.#small) {
      if (this.#smallBytes <= MAX_SMALL_BYTES) break
      this.#small.delete(oldest)
      this.#smallBytes -= length
    }
  }
}

/** Why a job failed, when it is over. */
export const failureOf = ({ error }: Job): Error | undefined =>
  error === undefined ? undefined : new Error(error.message)

/** Whether a pattern of the configuration names `owner/name`. */
export function allowsName({ allow }: Pick<OnDemandConfig, 'allow'>, text: string): boolean {
  const name = text.toLowerCase()
  return allow.some((pattern) => {
    const allowed = pattern.toLowerCase()
    return allowed === '*' || allowed === name || (allowed.endsWith('/*') && name.startsWith(allowed.slice(0, -1)))
  })
}

/** The result of a promise, unless it takes too long: the work then continues, and the client has to come again. */
async function inTime<T>(work: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  const over = new AbortController()
  const tooLate = delay(timeoutMs, undefined, { signal: over.signal, ref: false }).then(
    () => Promise.reject(later(what)),
    () => new Promise<never>(() => undefined)
  )
  try {
    return await Promise.race([work, tooLate])
  } finally {
    over.abort()
    work.catch(() => undefined)
  }
}

const unavailableNow = (error: Error): NotNowError =>
  new NotNowError(503, 'E_SOURCE_UNAVAILABLE', `the hub did not give it: ${error.message}`, 30)

function unavailable(error: unknown): never {
  if (error instanceof NotNowError) throw error
  throw (error as { code?: unknown }).code === 'E_RATE_LIMITED'
    ? later('as much as may be is being fetched', 30)
    : unavailableNow(error as Error)
}
