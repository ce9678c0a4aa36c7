import { type Log, type LookOptions, UnimportableListingError, type UpstreamRepo } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import type { DayBudget } from './day-budget.ts'
import { keptFor, tellOwner } from './demand-jobs.ts'
import type { HostQueue } from './host-queue.ts'
import { dayIsSpent, heapBytesOf, NotNowError, type Upstream } from './upstream.ts'

/** How long a listing is cached, also one of a commit: its repository may have become private since. */
const KNOWN_MS = 60_000
/** How long the absence of a repository, or the ban on sharing it, is cached. */
const ABSENT_MS = 60_000
const UNAVAILABLE_MS = 15_000
const MAX_ABSENT = 1_000
/** Limit of the names in cached listings, with their entries. */
const MAX_KNOWN_BYTES = 16 << 20

/** Errors after which the repository does not exist for clients of the mirror. */
const ABSENT_CODES: readonly unknown[] = [
  'E_UNKNOWN_REF',
  'E_SOURCE_FORBIDDEN',
  'E_BAD_REQUEST',
  'E_INVALID',
  'E_NOT_IMPORTABLE',
  'E_BAD_LISTING'
]

export interface LookFor extends Omit<LookOptions, 'onBytes'> {
  readonly repo: string
  /** Undefined: the default branch. */
  readonly revision: string | undefined
}

export interface LookupsDeps {
  readonly upstream: Pick<Upstream, 'look'>
  /** Pays for the bytes of listings and plans. */
  readonly day: DayBudget
  readonly queue: HostQueue
  readonly log: Pick<Log, 'info'>
  /** A monotonic clock. */
  readonly nowMs: () => number
}

/** Caches lookups of upstream repositories. Concurrent requests for one repository share a lookup. */
export class Lookups {
  readonly #upstream: Pick<Upstream, 'look'>
  readonly #day: DayBudget
  readonly #queue: HostQueue
  readonly #log: Pick<Log, 'info'>
  readonly #known: LRUCache<string, UpstreamRepo>
  readonly #absent: LRUCache<string, 'absent' | NotNowError>
  readonly #looking = new Map<string, Promise<UpstreamRepo | undefined>>()
  #total = 0

  constructor({ upstream, day, queue, log, nowMs }: LookupsDeps) {
    this.#upstream = upstream
    this.#day = day
    this.#queue = queue
    this.#log = log
    this.#known = new LRUCache({
      maxSize: MAX_KNOWN_BYTES,
      sizeCalculation: (repo) => heapBytesOf(repo),
      ...keptFor(KNOWN_MS, nowMs)
    })
    this.#absent = new LRUCache({ max: MAX_ABSENT, ...keptFor(ABSENT_MS, nowMs) })
  }

  get total(): number {
    return this.#total
  }

  /** For a client at IP address `host`. @throws NotNowError */
  async look(wanted: LookFor, host: string): Promise<UpstreamRepo | undefined> {
    const key = keyOf(wanted)
    const known = this.#known.get(key) ?? this.#looking.get(key) ?? this.#absent.get(key)
    if (known instanceof NotNowError) throw known
    if (known !== undefined) return known === 'absent' ? undefined : known
    const work = this.#queue.run(host, () => this.#ask(key, wanted))
    this.#looking.set(key, work)
    try {
      return await work
    } finally {
      this.#looking.delete(key)
    }
  }

  async #ask(key: string, wanted: LookFor): Promise<UpstreamRepo | undefined> {
    if (this.#day.isSpent()) throw dayIsSpent()
    this.#total++
    const onBytes = (bytes: number): void => this.#day.spend(bytes)
    try {
      const found = await this.#upstream.look(wanted.repo, wanted.revision, { ...wanted, onBytes })
      this.#known.set(keyOf({ ...wanted, revision: found.commit }), found)
      this.#known.set(key, found)
      return found
    } catch (error) {
      const { code } = error as { code?: unknown }
      if (code !== 'E_UNKNOWN_REF') tellOwner(this.#log, error, { repo: wanted.repo, revision: wanted.revision })
      if (error instanceof UnimportableListingError) {
        const never = new NotNowError(404, error.code, error.message)
        this.#absent.set(key, never)
        throw never
      }
      if (ABSENT_CODES.includes(code)) {
        this.#absent.set(key, 'absent')
        return undefined
      }
      const [status, wait] = code === 'E_RATE_LIMITED' ? ([429, 30] as const) : ([503, 10] as const)
      const notNow = new NotNowError(status, 'E_SOURCE_UNAVAILABLE', 'the hub cannot be asked now', wait)
      this.#absent.set(key, notNow, { ttl: UNAVAILABLE_MS })
      throw notNow
    }
  }
}

const keyOf = ({ repo, revision, isNamedOnly, branch }: LookFor): string =>
  `${repo.toLowerCase()} ${revision ?? ''} ${isNamedOnly} ${branch?.at}`
