import type { BlobReader } from '@svc/cas'
import type { Clock } from '@svc/internal-clock'
import { HostShares } from '@svc/internal-server'
import type { Log, WantedBlobs } from '@svc/library/parts'
import { ArrivingBlob, type ArrivingOptions } from './arriving-blob.ts'
import { DayBudget } from './day-budget.ts'
import { DemandJobs, type DemandJobsDeps, type Visit } from './demand-jobs.ts'
import { HostQueue } from './host-queue.ts'
import type { ServedStore } from './served-store.ts'
import { later, type NotNowError } from './upstream.ts'

/** Limit of clients that wait or read arriving bytes. Hosts share it. */
const MAX_WAITING = 256
/** Limits of reads of listings and small files: these take memory, and time of one thread. */
const READS = { atOnce: 2, maxWaiting: 64 }

/** What clients of the mirrors may have fetched. */
export interface OnDemand {
  /** Whether they may fetch a repository `owner/name`, or the model of a local name. */
  readonly allows: (name: string) => boolean
  readonly bytesPerDay: number
  /** After which a fetch is given up. */
  readonly timeoutMs: number
  /** Commits that may be fetched: only those of a branch or tag of the hub, or any. */
  readonly revisions: 'named' | 'any'
}

export interface DemandDeps {
  readonly jobs: DemandJobsDeps['jobs']
  readonly store: ServedStore
  readonly wanted: WantedBlobs
  readonly log: Log
  readonly clock: Clock
}

export interface WaitingClient {
  /** IP address. */
  readonly host: string
  /** Aborted when its connection is gone. */
  readonly gone: AbortSignal
  /** Whether it has left, or closed its sending side: the two cannot be told apart. */
  sendsNoMore(): boolean
  /** Cuts its connection. */
  cut(): void
}

interface Waiter {
  readonly client: WaitingClient
  /** Ends the wait, because another client gets the place. */
  readonly end: () => void
}

/**
 * What waiting clients of the mirrors share, whatever the source: places, turns and bytes (spec add.34, add.36).
 * Without a configuration, clients can follow the owner's fetches, but start none.
 */
export class Demand {
  readonly store: ServedStore
  readonly log: Log
  readonly clock: Clock
  readonly nowMs = (): number => this.clock.monotonic()
  readonly config: OnDemand | undefined
  /** Undefined if clients may start nothing. */
  readonly jobs: DemandJobs | undefined
  readonly reads: HostQueue
  /** The bytes that clients may have fetched in a day. */
  readonly day: DayBudget
  readonly #wanted: WantedBlobs
  readonly #waiting = new HostShares<Waiter>(MAX_WAITING, { hasLeft: ({ client }) => client.sendsNoMore() })

  constructor({ jobs, store, wanted, log, clock }: DemandDeps, config: OnDemand | undefined) {
    const { nowMs } = this
    this.store = store
    this.#wanted = wanted
    this.log = log
    this.clock = clock
    this.config = config
    this.day = new DayBudget(config?.bytesPerDay ?? 0, nowMs, (limitBytes) =>
      log.info({ limitBytes }, 'clients of the mirrors get no more today: the bytes of a day are spent')
    )
    this.reads = new HostQueue(READS, nowMs, () => later('others are being served first', 5))
    if (config !== undefined)
      this.jobs = new DemandJobs({ jobs, day: this.day, timeoutMs: config.timeoutMs, clock, log })
  }

  figures() {
    return {
      jobs: this.jobs?.count ?? 0,
      jobsLimit: this.jobs?.limit ?? 0,
      jobsTotal: this.jobs?.total ?? 0,
      dayBytes: this.day.spentBytes(),
      dayBytesLimit: this.config?.bytesPerDay ?? 0,
      waiting: this.#waiting.size,
      waitingLimit: this.#waiting.limit
    }
  }

  /** Whether clients may start fetches of a repository or name. */
  allows(name: string): boolean {
    return this.config?.allows(name) === true
  }

  /**
   * Opens a blob that a visit brings in, for one client: in the store if it is here within `waitMs`, else as it
   * arrives. @throws NotNowError, the error that ended the transfer
   */
  async open(
    blob: Pick<BlobReader, 'digest' | 'sizeBytes'>,
    visit: Visit,
    client: WaitingClient,
    { waitMs, ...options }: Omit<ArrivingOptions, 'onClose'> & { readonly waitMs: number }
  ): Promise<BlobReader> {
    let leave: () => void
    try {
      leave = this.#enter(client, () => client.cut())
    } catch (error) {
      visit.leave()
      throw error
    }
    const unwant = this.#wanted.add(blob.digest)
    const onClose = (): void => {
      unwant()
      leave()
      visit.leave()
    }
    const arriving = new ArrivingBlob(this.store, blob, visit.arrival, { ...options, clock: this.clock, onClose })
    const abandon = (): void => arriving.abandon()
    client.gone.addEventListener('abort', abandon)
    if (client.gone.aborted) abandon()
    try {
      const whole = waitMs > 0 ? await arriving.whole(waitMs) : undefined
      if (whole === undefined) return arriving
      await arriving.close()
      return whole
    } catch (error) {
      await arriving.close()
      throw error
    }
  }

  /** Runs `wait` for a client; `over` aborts when the client leaves, or another gets its place. @throws NotNowError */
  async whileWaiting(client: WaitingClient, wait: (over: AbortSignal) => Promise<void>): Promise<void> {
    const over = new AbortController()
    const leave = this.#enter(client, () => over.abort(tooMany()))
    const onGone = (): void => over.abort(later('the client has gone'))
    client.gone.addEventListener('abort', onGone)
    if (client.gone.aborted) onGone()
    try {
      await wait(over.signal)
    } finally {
      client.gone.removeEventListener('abort', onGone)
      leave()
    }
  }

  /** The result of `work`. If it takes too long, it continues, and the client must retry. @throws NotNowError */
  async inTime<T>(work: Promise<T>, timeoutMs: number, what: string): Promise<T> {
    const tooLate = Promise.withResolvers<never>()
    const timer = this.clock.after(timeoutMs, () => tooLate.reject(later(what)))
    try {
      return await Promise.race([work, tooLate.promise])
    } finally {
      timer.cancel()
      work.catch(() => undefined)
    }
  }

  /** Takes a place. `end` is called when another client gets it. @returns gives it back @throws NotNowError */
  #enter(client: WaitingClient, end: () => void): () => void {
    const waiting: Waiter = { client, end }
    const going = this.#waiting.add(client.host, waiting)
    if (going === waiting) throw tooMany()
    going?.end()
    return () => this.#waiting.delete(waiting)
  }
}

const tooMany = (): NotNowError => later('the limit of waiting clients is reached', 10)
