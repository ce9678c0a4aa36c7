import type { BlobReader } from '@svc/cas'
import type { UpstreamFile, UpstreamRepo } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import type { Demand, WaitingClient } from './demand.ts'
import { keptFor, tellOwner, toNotNow, type Visit, type Way } from './demand-jobs.ts'
import { type LookFor, Lookups } from './lookups.ts'
import { NotNowError, type RunningFetch, type Upstream } from './upstream.ts'

/** Errors of a source that sends other bytes than it lists, or lists what cannot be. */
const REFUSED: readonly unknown[] = ['E_NOT_IMPORTABLE', 'E_BAD_LISTING']

/** Some official clients wait only ten seconds for the head of a response. */
export const ANSWER_MS = 8_000
/** A response from the store waits no longer than this for the hub's further files. */
const BRIEF_MS = 2_000
/** How long a commit counts as named after a branch or tag named it: a client may read a snapshot for hours while the branch moves on. */
const NAMED_MS = 12 * 3_600_000
const MAX_NAMED = 1_000
/** Limit of small files cached in memory, in total. */
const MAX_SMALL_BYTES = 64 << 20
const HUB: Way = { source: 'the hub', isVerifiedLate: true }

/** What a client of the mirror wants to see, from the IP address `host`. */
export interface HubRequest {
  readonly repo: string
  /** Undefined: the default branch. */
  readonly revision: string | undefined
  /** The commit that the store has. */
  readonly commitHere?: string | undefined
  /** When the hub said that this commit is the default branch's. */
  readonly branch?: LookFor['branch']
  readonly isBrief: boolean
  readonly host: string
}

/** A small file that is read for a client at IP address `host`. */
interface SmallFile {
  readonly repo: UpstreamRepo
  readonly file: UpstreamFile
  readonly host: string
}

/**
 * Fetches from the hub what clients ask for and the store lacks (spec add.34): a small file alone, and into memory
 * only, a large one with its artifact, by an ordinary import. Concurrent requests for the same thing share one fetch.
 */
export class HubDemand {
  readonly #demand: Demand
  readonly #jobs: NonNullable<Demand['jobs']>
  readonly #upstream: Upstream
  readonly #lookups: Lookups
  readonly #small = new LRUCache<string, Uint8Array, SmallFile>({
    maxSize: MAX_SMALL_BYTES,
    sizeCalculation: (bytes) => Math.max(1, bytes.length),
    // a waiting caller gets its file even if the cache evicts it meanwhile
    ignoreFetchAbort: true,
    fetchMethod: (key, _stale, { context }) => this.#readSmall(key, context)
  })
  readonly #named: LRUCache<string, true>

  /** @param demand with a configuration that lets clients have something fetched */
  constructor(demand: Demand, upstream: Upstream) {
    if (demand.jobs === undefined) throw new Error('clients may not start downloads')
    this.#demand = demand
    this.#jobs = demand.jobs
    this.#upstream = upstream
    const { day, reads: queue, log, nowMs } = demand
    this.#lookups = new Lookups({ upstream, day, queue, log, nowMs })
    this.#named = new LRUCache({ max: MAX_NAMED, ...keptFor(NAMED_MS, demand.nowMs) })
  }

  get lookupsTotal(): number {
    return this.#lookups.total
  }

  allows(repo: string): boolean {
    return this.#demand.allows(repo)
  }

  /**
   * The upstream repository; undefined if there is none that may be shared, both under the requested name and under the
   * hub's own. With `isBrief`, a silent or refusing hub is no error: there is a response without it.
   * @throws NotNowError
   */
  async look({ repo, revision, commitHere, isBrief, host, branch }: HubRequest): Promise<UpstreamRepo | undefined> {
    if (!this.allows(repo)) return undefined
    const at = commitHere ?? revision
    const isNamedOnly = commitHere === undefined && this.#isToBeNamed(repo, revision)
    const lookFor: LookFor = { repo, revision: at, isNamedOnly, ...(branch !== undefined && { branch }) }
    try {
      const time = isBrief ? BRIEF_MS : ANSWER_MS
      const found = await this.#demand.inTime(this.#lookups.look(lookFor, host), time, 'the hub is being asked')
      if (found === undefined || !this.allows(found.repo)) return undefined
      if (commitHere === undefined) this.#named.set(commitKey(repo, found.commit), true)
      return found
    } catch (error) {
      if (isBrief && error instanceof NotNowError) return undefined
      throw error
    }
  }

  #isToBeNamed(repo: string, revision: string | undefined): boolean {
    if (this.#demand.config?.revisions === 'any' || revision === undefined) return false
    return !this.#named.has(commitKey(repo, revision))
  }

  /** The bytes of a small file, for a client at IP address `host`. @throws NotNowError */
  async small(repo: UpstreamRepo, file: UpstreamFile, host: string): Promise<Uint8Array> {
    const key = `${repo.repo} ${repo.commit} ${file.name}`
    const reading = this.#small.forceFetch(key, { context: { repo, file, host } })
    return this.#demand.inTime(reading, ANSWER_MS, `${file.name} is being fetched`)
  }

  /**
   * A large file, for one client. The hub has no proofs of parts, so nothing is read before the whole is verified; a
   * reader waits if that takes longer than a client waits for a head. The store's bytes under that digest are read only
   * if the hub served them without a token. @throws NotNowError
   */
  async large(repo: UpstreamRepo, file: UpstreamFile, client: WaitingClient): Promise<BlobReader> {
    const { sha256: digest, name, sizeBytes } = file
    if (digest === undefined) throw new Error(`${name} has no SHA-256`)
    const begunMs = this.#demand.clock.monotonic()
    const mayRead = async (): Promise<boolean> => this.#upstream.hasBrought(repo, name)
    if ((await mayRead()) && (await this.#demand.store.stat(digest)) !== undefined)
      return this.#demand.store.open(digest)
    const visiting = this.#visit(repo, file, client.host)
    const visit = await this.#demand
      .inTime(visiting, ANSWER_MS, `${name} is being looked for`)
      .catch((error: unknown) => {
        // the work continues; the client retries
        visiting.then((late) => late.leave()).catch(() => undefined)
        throw error
      })
    const waitMs = Math.max(1, ANSWER_MS - (this.#demand.clock.monotonic() - begunMs))
    try {
      return await this.#demand.open({ digest, sizeBytes }, visit, client, { mayRead, waitMs })
    } catch (error) {
      throw toNotNow(HUB, error)
    }
  }

  async #visit(repo: UpstreamRepo, { name }: UpstreamFile, host: string): Promise<Visit> {
    const { quant } = await this.#upstream.artifactOf(repo, name).catch((error: unknown) => {
      tellOwner(this.#demand.log, error, { repo: repo.repo, name })
      throw toNotNow(HUB, error)
    })
    const start = async (): Promise<RunningFetch> => {
      const job = await this.#upstream.bring(repo, quant)
      const { commit } = repo
      this.#demand.log.info(
        { job: job.id, repo: repo.repo, commit, quant },
        'a client of the mirror asked for a missing model'
      )
      return job
    }
    const missingBytes = (): Promise<number> => this.#upstream.missingBytesOf(repo, quant)
    return this.#jobs.bring({ key: `${repo.repo} ${repo.commit} ${quant}`, way: HUB, missingBytes, start }, host)
  }

  #readSmall(key: string, { repo, file, host }: SmallFile): Promise<Uint8Array> {
    this.#jobs.requireNoFailure(key)
    return this.#demand.reads.run(host, async () => {
      const spending = this.#jobs.spend(file.sizeBytes)
      try {
        return await this.#upstream.read(repo, file.name)
      } catch (error) {
        // a source that sends other bytes than it lists would do so again
        if (REFUSED.includes((error as { code?: unknown }).code)) this.#jobs.fail(key, HUB, error as Error)
        else spending.giveBack(Infinity)
        tellOwner(this.#demand.log, error, { repo: repo.repo, name: file.name })
        throw toNotNow(HUB, error)
      }
    })
  }
}

const commitKey = (repo: string, commit: string): string => `${repo.toLowerCase()} ${commit}`
