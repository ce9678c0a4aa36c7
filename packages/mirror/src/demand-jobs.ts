import type { Clock, Timer } from '@svc/internal-clock'
import { HostShares } from '@svc/internal-server'
import type { Log } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import type { Arrival } from './arriving-blob.ts'
import type { DayBudget, Spending } from './day-budget.ts'
import { HostUse } from './host-use.ts'
import { dayIsSpent, later, NotNowError, type RunningFetch, type RunningFetches } from './upstream.ts'

/** Limit of concurrent jobs that clients caused. Hosts share them. */
const MAX_JOBS = 4
/** After a failure, the same thing is not tried again within this time. */
const FAILED_MS = 30_000
const MAX_FAILED = 1_000
/** How long a job without clients continues: clients that get a 429 retry within half a minute. */
const GRACE_MS = 60_000
/** While other hosts have every place, a host that has had this much less time gets one of them. */
const TURN_MS = 20_000

export interface DemandJobsDeps {
  readonly jobs: Pick<RunningFetches, 'require' | 'over' | 'giveUp' | 'openOf'>
  readonly clock: Clock
  readonly day: DayBudget
  readonly timeoutMs: number
  readonly log: Pick<Log, 'info'>
}

export interface Way {
  /** For messages. */
  readonly source: string
  /** Bad bytes show only once a whole file is here, and are dropped then: they cost the job's full estimate. */
  readonly isVerifiedLate: boolean
}

/** Something that a client asks for and a job brings in. */
export interface Demanded {
  readonly key: string
  readonly way: Way
  /** Bytes to fetch now. Called again after a failure: bytes that are still missing have cost nothing. */
  missingBytes(): Promise<number>
  start(): Promise<RunningFetch>
}

/** What a client waits for, or reads. */
export interface Visit {
  readonly arrival: Arrival
  /** The client has gone. Idempotent. */
  leave(): void
}

/** A job, and the hosts that wait for it. */
interface Open {
  /** Of the client that caused it. */
  readonly host: string
  endUse?: () => void
  /** Hosts of the clients, one entry each. */
  readonly hosts: string[]
  /** Set before anything is awaited, so that concurrent requests share it. */
  arrival?: Promise<Arrival>
  job?: string
  grace?: Timer | undefined
  /** Why it is being ended. */
  ending?: string
}

/**
 * Jobs that clients cause: each at most once at a time, not too many, not too often, and within the bytes of a day. Hosts
 * share the places and take turns in them, and a job ends after a minute without a waiting client (spec add.40).
 */
export class DemandJobs {
  readonly #deps: DemandJobsDeps
  readonly #open = new Map<string, Open>()
  readonly #places = new HostShares<Open>(MAX_JOBS, { leastOf: leastWanted })
  readonly #use: HostUse
  readonly #failed: LRUCache<string, NotNowError>
  #total = 0

  constructor(deps: DemandJobsDeps) {
    this.#deps = deps
    const nowMs = (): number => deps.clock.monotonic()
    this.#use = new HostUse(nowMs)
    this.#failed = new LRUCache({ max: MAX_FAILED, ...keptFor(FAILED_MS, nowMs) })
  }

  get count(): number {
    return this.#places.size
  }

  get limit(): number {
    return MAX_JOBS
  }

  get total(): number {
    return this.#total
  }

  /** Whether a job brings it in. */
  has(key: string): boolean {
    return this.#open.has(key)
  }

  /** Joins a running job for this; undefined if there is none. @throws NotNowError */
  async join(key: string, host: string): Promise<Visit | undefined> {
    const open = this.#open.get(key)
    return open && this.#visit(open, host)
  }

  /** Joins the running job for this, or starts one, for the client at IP address `host`. @throws NotNowError */
  async bring(demanded: Demanded, host: string): Promise<Visit> {
    const { key } = demanded
    const known = this.#open.get(key)
    if (known !== undefined) return this.#visit(known, host)
    this.requireNoFailure(key)
    const open: Open = { host, hosts: [] }
    let going = this.#places.add(host, open)
    if (going === open) {
      going = this.#longest(host)
      if (going === undefined) throw later('the limit of models that are fetched at once is reached', 10)
      this.#places.delete(going)
      this.#places.add(host, open)
    }
    open.endUse = this.#use.begin(host)
    if (going !== undefined) this.#end(going, 'made room for another client of the mirror')
    open.arrival = this.#bring(open, demanded)
    this.#open.set(key, open)
    return this.#visit(open, host)
  }

  /** The least wanted job of the hosts that have had a turn more than this one; undefined if there is none. */
  #longest(host: string): Open | undefined {
    const ownMs = this.#use.of(host)
    const jobs = [...this.#open.values()].filter(({ ending }) => ending === undefined)
    const long = jobs.filter((open) => this.#use.of(open.host) >= ownMs + TURN_MS)
    return long.length === 0 ? undefined : leastWanted(new Set(long))
  }

  /** @throws NotNowError if it has just {@link fail | failed} */
  requireNoFailure(key: string): void {
    const failed = this.#failed.get(key)
    if (failed !== undefined) throw failed
  }

  /** Refuses it for some time. */
  fail(key: string, way: Way, error: Error): void {
    this.#failed.set(key, toNotNow(way, error))
  }

  /** Spends bytes of the day. @throws NotNowError */
  spend(sizeBytes: number): Spending {
    const spending = this.#deps.day.trySpend(sizeBytes)
    if (spending !== undefined) return spending
    throw dayIsSpent()
  }

  async #visit(open: Open, host: string): Promise<Visit> {
    if (open.ending !== undefined) throw later('other clients are being served first', 10)
    open.grace?.cancel()
    open.hosts.push(host)
    let isHere = true
    const leave = (): void => {
      if (!isHere) return
      isHere = false
      open.hosts.splice(open.hosts.indexOf(host), 1)
      if (open.hosts.length > 0) return
      open.grace = this.#deps.clock.after(GRACE_MS, () => this.#end(open, 'had no client of the mirror left'))
    }
    try {
      return { arrival: await open.arrival!, leave }
    } catch (error) {
      leave()
      throw error
    }
  }

  #end(open: Open, why: string): void {
    if (open.ending !== undefined) return
    open.ending = why
    open.endUse?.()
    this.#places.delete(open)
    if (open.job !== undefined) void this.#deps.jobs.giveUp(open.job, why).catch(() => undefined)
  }

  #close(key: string, open: Open): void {
    open.grace?.cancel()
    open.endUse?.()
    this.#places.delete(open)
    this.#open.delete(key)
  }

  async #bring(open: Open, demanded: Demanded): Promise<Arrival> {
    let spending: Spending | undefined
    try {
      spending = this.spend(await demanded.missingBytes())
      const job = await demanded.start()
      this.#total++
      open.job = job.id
      if (open.ending !== undefined) void this.#deps.jobs.giveUp(job.id, open.ending).catch(() => undefined)
      return { over: this.#over(open, job, demanded, spending) }
    } catch (error) {
      this.#close(demanded.key, open)
      spending?.giveBack(Infinity)
      tellOwner(this.#deps.log, error, { asked: demanded.key })
      throw toNotNow(demanded.way, error)
    }
  }

  /** Waits until a job is over. @returns why it failed */
  async #over(
    open: Open,
    { id }: RunningFetch,
    { key, way, missingBytes }: Demanded,
    spending: Spending
  ): Promise<Error | undefined> {
    const { jobs } = this.#deps
    const stopTimer = this.#limit(id)
    try {
      const job = await jobs.over(id).finally(stopTimer)
      const error = failureOf(job)
      if (error === undefined) return undefined
      // a client that returns to a job ended for others, or for want of a client, continues it
      if (open.ending === undefined) this.fail(key, way, error)
      if (!way.isVerifiedLate || job.error?.code !== 'E_NOT_IMPORTABLE') spending.giveBack(await missingBytes())
      return error
    } catch (error) {
      return error as Error
    } finally {
      this.#close(key, open)
    }
  }

  /** Ends a job that takes too long, unless another job needs the same artifact, and would only have to start again. */
  #limit(id: string): () => void {
    const { clock, jobs, timeoutMs } = this.#deps
    const timer = clock.every(timeoutMs, () => {
      const { manifest } = jobs.require(id)
      if (manifest !== undefined && jobs.openOf(manifest).some((other) => other.id !== id)) return
      void jobs.giveUp(id, 'took too long').catch(() => undefined)
    })
    return () => timer.cancel()
  }
}

/** The job that the fewest hosts wait for; of several, the oldest. */
function leastWanted(held: ReadonlySet<Open>): Open {
  const wanted = ({ hosts }: Open): number => new Set(hosts).size
  return [...held].reduce((least, open) => (wanted(open) < wanted(least) ? open : least))
}

/** The error for a client whose request could not be met; it does not learn why. */
export function toNotNow({ source }: Way, error: unknown): NotNowError {
  if (error instanceof NotNowError) return error
  const { code } = error as { code?: unknown }
  if (code === 'E_RATE_LIMITED') return later('the limit of bytes that are fetched at once is reached', 30)
  return new NotNowError(503, 'E_SOURCE_UNAVAILABLE', `it cannot be had from ${source} now`, 30)
}

/** Tells the owner why a client got nothing, which {@link toNotNow} leaves out. Failed jobs are logged anyway. */
export function tellOwner(log: Pick<Log, 'info'>, error: unknown, about: Readonly<Record<string, unknown>>): void {
  if (error instanceof NotNowError) return
  const { code, message } = error as { code?: unknown; message: string }
  log.info({ ...about, code, reason: message }, 'a client of the mirror was refused')
}

/** Options of a cache whose entries end after some time, by our clock. */
export const keptFor = (ttl: number, now: () => number) => ({ ttl, ttlResolution: 0, perf: { now } })

const failureOf = ({ error }: RunningFetch): Error | undefined =>
  error === undefined ? undefined : new Error(error.message)

/** Waits for a job, whatever its result. */
export const followed = (jobs: Pick<RunningFetches, 'over'>, job: string): Visit => ({
  arrival: { over: jobs.over(job).then(failureOf, (error: Error) => error) },
  leave: () => undefined
})
