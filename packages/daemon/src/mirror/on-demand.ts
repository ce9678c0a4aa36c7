import { setTimeout as delay } from 'node:timers/promises'
import type { DiskBlobStore } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import type { OnDemandConfig } from '../config/config.ts'
import type { Log } from '../log.ts'
import type { DayBudget } from './day-budget.ts'
import { DemandJobs, type Visit } from './demand-jobs.ts'
import { GrowingBlob } from './growing-blob.ts'
import { HostQueue } from './host-queue.ts'
import { type LookFor, Lookups } from './lookups.ts'
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
/** How long a commit counts as named after a branch or tag named it: a client may read a snapshot for hours while the branch moves on. */
const NAMED_MS = 12 * 3_600_000
const MAX_NAMED = 1_000
/** Limit of small files cached in memory, in total. */
const MAX_SMALL_BYTES = 64 << 20
/** Fetches of small files at once, and those that wait. */
const READS = { atOnce: 2, maxWaiting: 64 }

/** The daemon's objects that importing on demand uses. */
export interface OnDemandDeps {
  readonly upstream: Upstream
  readonly jobs: UpstreamJobs
  readonly store: DiskBlobStore
  readonly log: Log
  /** A monotonic clock; default: the process's. */
  readonly nowMs?: () => number
  readonly day: DayBudget
}

/** What a client of the mirror wants to see, from the IP address `host`. */
export interface Wanted {
  readonly repo: string
  /** Undefined: the default branch. */
  readonly revision: string | undefined
  /** The commit that it has here, whoever names it. */
  readonly commitHere?: string | undefined
  /** When the hub said that this commit is the default branch's. */
  readonly branch?: LookFor['branch']
  readonly isBrief: boolean
  readonly host: string
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
  readonly #jobs: DemandJobs
  readonly #small = new Map<string, Uint8Array>()
  readonly #reading = new Map<string, Promise<Uint8Array>>()
  readonly #reads: HostQueue
  readonly #named = new Map<string, number>()
  #smallBytes = 0

  constructor(deps: OnDemandDeps, config: OnDemandConfig) {
    this.#deps = deps
    this.#config = config
    this.#nowMs = deps.nowMs ?? (() => performance.now())
    this.#reads = new HostQueue(READS, this.#nowMs, () => later('others are being served first'))
    this.#lookups = new Lookups({ ...deps, nowMs: this.#nowMs })
    const { jobs, day } = deps
    const { timeoutMs } = config
    this.#jobs = new DemandJobs({ jobs, day, timeoutMs, nowMs: this.#nowMs, source: 'the hub', isVerifiedLate: true })
  }

  figures(): OnDemandFigures {
    return {
      imports: this.#jobs.count,
      importsLimit: this.#jobs.limit,
      importsTotal: this.#jobs.total,
      lookupsTotal: this.#lookups.total,
      dayBytes: this.#deps.day.spentBytes(),
      dayBytesLimit: this.#config.bytesPerDay
    }
  }

  /** Whether a repository may be fetched at all. */
  allows(repo: string): boolean {
    return this.#config.allows(repo)
  }

  /**
   * The upstream repository, or undefined if there is none that may be shared, under the name that was asked for and
   * under the one that the hub answers with. With `isBrief` a silent or refusing hub is not an error, since there is a
   * response without it. `host` is the client's IP address.
   * @throws NotNowError
   */
  async look({ repo, revision, commitHere, ...wanted }: Wanted): Promise<UpstreamRepo | undefined> {
    if (!this.allows(repo)) return undefined
    const { isBrief, host, branch } = wanted
    const at = commitHere ?? revision
    const isNamedOnly = commitHere === undefined && this.#isToBeNamed(repo, revision)
    const lookFor: LookFor = { repo, revision: at, isNamedOnly, ...(branch !== undefined && { branch }) }
    try {
      const time = isBrief ? BRIEF_MS : ANSWER_MS
      const found = await inTime(this.#lookups.look(lookFor, host), time, 'the hub is being asked')
      if (found === undefined || !this.allows(found.repo)) return undefined
      if (commitHere === undefined) this.#name(repo, found.commit)
      return found
    } catch (error) {
      if (isBrief && error instanceof NotNowError) return undefined
      throw error
    }
  }

  #isToBeNamed(repo: string, revision: string | undefined): boolean {
    if (this.#config.revisions === 'any' || revision === undefined) return false
    const namedMs = this.#named.get(`${repo.toLowerCase()} ${revision}`)
    return namedMs === undefined || this.#nowMs() - namedMs >= NAMED_MS
  }

  #name(repo: string, commit: string): void {
    const key = `${repo.toLowerCase()} ${commit}`
    this.#named.delete(key)
    if (this.#named.size >= MAX_NAMED) this.#named.delete(this.#named.keys().next().value!)
    this.#named.set(key, this.#nowMs())
  }

  /** The bytes of a small file, for a client at IP address `host`. @throws NotNowError */
  async small(repo: UpstreamRepo, { name, sizeBytes }: UpstreamFile, host: string): Promise<Uint8Array> {
    const key = `${repo.repo} ${repo.commit} ${name}`
    const known = this.#small.get(key)
    if (known !== undefined) return known
    let reading = this.#reading.get(key)
    if (reading === undefined) {
      this.#jobs.requireNoFailure(key)
      reading = this.#readSmall(key, repo, { name, sizeBytes }, host)
      this.#reading.set(key, reading)
      reading.catch(() => undefined).finally(() => this.#reading.delete(key))
    }
    return inTime(reading, ANSWER_MS, `${name} is being fetched`)
  }

  /**
   * A large file that can be read as it arrives, for a client at IP address `host`; resolves when its first byte is
   * there. Whatever the store has under that digest, it is read only when the hub has given these bytes to strangers.
   * @throws NotNowError
   */
  async large(repo: UpstreamRepo, file: UpstreamFile, offset: number, host: string): Promise<GrowingBlob> {
    const { sha256: digest, sizeBytes, partialKey } = file
    const { store, upstream } = this.#deps
    if (digest === undefined) throw new Error(`${file.name} has no SHA-256`)
    const begunMs = this.#nowMs()
    const mayRead = (): boolean => upstream.hasBrought(repo, file.name)
    const isHere = mayRead() && (await store.stat(digest)) !== undefined
    const visiting = isHere ? NOTHING_ARRIVES : this.#visit(repo, file, host)
    const { arrival, leave } = await inTime(visiting, ANSWER_MS, `${file.name} is being looked for`).catch(
      (error: unknown) => {
        // it goes on without this client, who comes again
        visiting.then((late) => late.leave()).catch(() => undefined)
        throw error
      }
    )
    const blob = new GrowingBlob(store, { digest, sizeBytes }, arrival, { partialKey, mayRead, onClose: leave })
    if (await blob.begins(offset, Math.max(1, ANSWER_MS - (this.#nowMs() - begunMs)))) return blob
    await blob.close()
    throw later(`${file.name} is being fetched`)
  }

  async #visit(repo: UpstreamRepo, { name }: UpstreamFile, host: string): Promise<Visit> {
    const { upstream, log } = this.#deps
    const { quant } = await upstream.artifactOf(repo, name).catch((error: unknown) => {
      throw this.#jobs.toNotNow(error)
    })
    const key = `${repo.repo} ${repo.commit} ${quant}`
    const missingBytes = (): Promise<number> => upstream.missingBytesOf(repo, quant)
    const start = async (): Promise<Job> => {
      const job = await upstream.bring(repo, quant)
      const { repo: name, commit } = repo
      log.info({ job: job.id, repo: name, commit, quant }, 'a client of the mirror asked for what is not here')
      return job
    }
    return this.#jobs.bring(key, { missingBytes, start }, host)
  }

  #readSmall(
    key: string,
    repo: UpstreamRepo,
    { name, sizeBytes }: Pick<UpstreamFile, 'name' | 'sizeBytes'>,
    host: string
  ): Promise<Uint8Array> {
    return this.#reads.run(host, async () => {
      const spending = this.#jobs.spend(sizeBytes)
      try {
        const bytes = await this.#deps.upstream.read(repo, name)
        this.#keep(key, bytes)
        return bytes
      } catch (error) {
        // whoever sends other bytes than it lists would do so again
        if ((error as { code?: unknown }).code === 'E_NOT_IMPORTABLE') this.#jobs.fail(key, error as Error)
        else spending.giveBack(Infinity)
        throw this.#jobs.toNotNow(error)
      }
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

/** For what is here already. */
const NOTHING_ARRIVES: Promise<Visit> = Promise.resolve({
  arrival: { over: Promise.resolve(undefined) },
  leave: () => undefined
})

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
