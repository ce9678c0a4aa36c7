import type { DiskBlobStore } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { OnDemandConfig } from '../config/config.ts'
import { HostShares } from '../http/host-shares.ts'
import type { Documents } from '../library/documents.ts'
import type { Log } from '../log.ts'
import type { DayBudget } from './day-budget.ts'
import { DemandJobs, failureOf, type Visit } from './demand-jobs.ts'
import { type Arrival, GrowingBlob } from './growing-blob.ts'
import { later, NotNowError, type UpstreamJobs } from './upstream.ts'

/** A manifest is sent when the small files are here that it describes. Proxies give up on a head after a minute. */
const HOLD_MS = 45_000
/** Limit of clients that wait, or read what is still arriving. Hosts share it. */
const MAX_WAITING = 256
/** Blobs come in other ways as well, of which there is no event. */
const LOOK_MS = 1_000

/** What fetches artifacts through the swarm. Its errors have the API's codes. */
export interface FillSource {
  /** Starts to fetch what is missing of an artifact. */
  fetchRest(manifestDigest: Sha256Digest): Promise<Job>
  /** Says which blobs are waited for: they are fetched first. */
  reading(manifestDigest: Sha256Digest, digests: Iterable<Sha256Digest>): { at(offset: number): void; close(): void }
}

/** The daemon's objects that this uses. */
export interface SwarmDemandDeps {
  readonly source: FillSource
  readonly jobs: UpstreamJobs
  readonly store: DiskBlobStore
  readonly documents: Documents
  readonly log: Log
  /** A monotonic clock; default: the process's. */
  readonly nowMs?: () => number
}

/** What clients may cause; without a configuration they can follow what the owner fetches, and start nothing. */
export interface SwarmDemandLimits {
  readonly config: OnDemandConfig | undefined
  readonly day: DayBudget | undefined
  /** Default 45 seconds. */
  readonly holdMs?: number
}

/** An artifact by its name here, for the allow-list, and its manifest. */
export interface Awaited {
  readonly name: string
  readonly manifest: Sha256Digest
}

/** Who asks. */
export interface WaitingClient {
  /** IP address. */
  readonly host: string
  /** Aborted when its connection is gone. */
  readonly gone: AbortSignal
  /** Whether it has left, or closed its sending side: which of both nobody can say. */
  sendsNoMore(): boolean
  /** Cuts its connection. */
  cut(): void
}

interface Waiting {
  readonly client: WaitingClient
  /** Ends the wait, because another client is to have the place. */
  readonly end: () => void
}

/** Figures for the metrics. */
export interface SwarmDemandFigures {
  readonly fills: number
  readonly fillsLimit: number
  readonly fillsTotal: number
  readonly waiting: number
  readonly waitingLimit: number
}

/**
 * Artifacts of which a manifest is here, and not every blob, for clients of the OCI mirror (spec add.36): they follow what is being
 * fetched, and may start it, as far as the configuration allows. Concurrent requests for the same thing share one fetch.
 */
export class SwarmDemand {
  readonly #deps: SwarmDemandDeps
  readonly #limits: SwarmDemandLimits
  /** Undefined if clients may start nothing. */
  readonly #jobs: DemandJobs | undefined
  readonly #waiting = new HostShares<Waiting>(MAX_WAITING, { hasLeft: ({ client }) => client.sendsNoMore() })

  constructor(deps: SwarmDemandDeps, limits: SwarmDemandLimits) {
    this.#deps = deps
    this.#limits = limits
    const { jobs, nowMs = () => performance.now() } = deps
    const { config, day } = limits
    if (config === undefined || day === undefined) return
    const { timeoutMs } = config
    this.#jobs = new DemandJobs({ jobs, day, timeoutMs, nowMs, source: 'the swarm', isVerifiedLate: false })
  }

  figures(): SwarmDemandFigures {
    return {
      fills: this.#jobs?.count ?? 0,
      fillsLimit: this.#jobs?.limit ?? 0,
      fillsTotal: this.#jobs?.total ?? 0,
      waiting: this.#waiting.size,
      waitingLimit: this.#waiting.limit
    }
  }

  /** Whether a blob of an artifact is absent; undefined if even its manifest is. */
  async lacks(manifestDigest: Sha256Digest): Promise<boolean | undefined> {
    const manifest = await this.#deps.documents.manifest(manifestDigest)
    return manifest && (await this.#missing(manifest.files)).length > 0
  }

  /** Whether the OCI manifest can be made now: see {@link described}. */
  async isDescribed(manifestDigest: Sha256Digest): Promise<boolean> {
    const manifest = await this.#deps.documents.manifest(manifestDigest)
    return manifest !== undefined && (await this.#missing(manifest.files.filter(isDescribing))).length === 0
  }

  /** Whether blobs of an artifact that are not here come, or would come if they were asked for. */
  offers({ name, manifest }: Awaited): boolean {
    return this.isUnderWay(manifest) || this.#allows(name)
  }

  /** Whether something fetches an artifact. */
  isUnderWay(manifest: Sha256Digest): boolean {
    return this.#jobs?.has(manifest) === true || this.#jobOf(manifest) !== undefined
  }

  /** The size of a blob that is a file of the artifact's manifest; undefined for other digests. */
  async sizeOf(manifestDigest: Sha256Digest, digest: Sha256Digest): Promise<number | undefined> {
    const manifest = await this.#deps.documents.manifest(manifestDigest)
    return manifest?.files.find((file) => file.digest === digest)?.size
  }

  /**
   * Waits for what the OCI manifest is made from: the model config, and what is unpacked from tars. With `mayStart` an
   * artifact that nobody fetches is fetched from now on. @returns false if it is not to be had, or no blob that is not
   * here would be. @throws NotNowError
   */
  async described({ name, manifest: digest }: Awaited, mayStart: boolean, client: WaitingClient): Promise<boolean> {
    const manifest = await this.#deps.documents.manifest(digest)
    if (manifest === undefined) return false
    const wanted = manifest.files.filter(isDescribing)
    const awaited = { name, manifest: digest }
    if ((await this.#missing(wanted)).length === 0)
      return this.offers(awaited) || (await this.#missing(manifest.files)).length === 0
    const visit = await this.#visit(awaited, mayStart, client.host)
    if (visit === undefined) return false
    const reading = this.#deps.source.reading(
      digest,
      wanted.map((file) => file.digest)
    )
    try {
      await this.#whileWaiting(client, (over) => this.#arrived(wanted, visit.arrival, over))
    } finally {
      reading.close()
      visit.leave()
    }
    return true
  }

  /** A blob that is read as it arrives, from `start` on; undefined if it is not to be had. @throws NotNowError */
  async open(
    { name, manifest }: Awaited,
    blob: { readonly digest: Sha256Digest; readonly sizeBytes: number },
    start: number,
    client: WaitingClient
  ): Promise<GrowingBlob | undefined> {
    const visit = await this.#visit({ name, manifest }, true, client.host)
    if (visit === undefined) return undefined
    let leave: () => void
    try {
      leave = this.#enter(client, () => client.cut())
    } catch (error) {
      visit.leave()
      throw error
    }
    const reading = this.#deps.source.reading(manifest, [blob.digest])
    reading.at(start)
    return new GrowingBlob(this.#deps.store, blob, visit.arrival, {
      onRead: (offset) => reading.at(offset),
      onClose: () => {
        leave()
        visit.leave()
        reading.close()
      }
    })
  }

  async #missing(files: Manifest['files']): Promise<Manifest['files'][number][]> {
    const missing: Manifest['files'][number][] = []
    for (const file of files) {
      const info = await this.#deps.store.stat(file.digest)
      if (info?.sizeBytes !== file.size) missing.push(file)
    }
    return missing
  }

  /** What brings an artifact in; undefined if nothing does, and nothing may be started. @throws NotNowError */
  async #visit({ name, manifest }: Awaited, mayStart: boolean, host: string): Promise<Visit | undefined> {
    const known = await this.#jobs?.join(manifest, host)
    if (known !== undefined) return known
    const arrival = this.#underWay(manifest)
    if (arrival !== undefined) return { arrival, leave: () => undefined }
    if (!mayStart || !this.#allows(name)) return undefined
    const { source, log } = this.#deps
    const missingBytes = (): Promise<number> => this.#missingBytes(manifest)
    const start = async (): Promise<Job> => {
      const job = await source.fetchRest(manifest)
      log.info({ job: job.id, name, manifest }, 'a client of the mirror asked for what is not complete here')
      return job
    }
    return this.#jobs!.bring(manifest, { missingBytes, start }, host)
  }

  #allows(name: string): boolean {
    const { config } = this.#limits
    return this.#jobs !== undefined && config?.allows(name) === true
  }

  async #missingBytes(manifest: Sha256Digest): Promise<number> {
    const document = await this.#deps.documents.manifest(manifest)
    const missing = new Map((await this.#missing(document?.files ?? [])).map(({ digest, size }) => [digest, size]))
    let bytes = 0
    for (const [digest, size] of missing)
      bytes += Math.max(0, size - (this.#deps.store.partialStatus(digest)?.writtenBytes ?? 0))
    return bytes
  }

  /** What others fetch. */
  #underWay(manifest: Sha256Digest): Arrival | undefined {
    const job = this.#jobOf(manifest)
    return job && { over: this.#deps.jobs.over(job.id).then(failureOf, asError) }
  }

  #jobOf(manifest: Sha256Digest): Job | undefined {
    return this.#deps.jobs.openOf(manifest).find(({ kind }) => FETCHES.has(kind))
  }

  /** Takes a place. `end` is called when another client is to have it. @returns gives it back @throws NotNowError */
  #enter(client: WaitingClient, end: () => void): () => void {
    const waiting: Waiting = { client, end }
    const going = this.#waiting.add(client.host, waiting)
    if (going === waiting) throw tooMany()
    going?.end()
    return () => this.#waiting.delete(waiting)
  }

  /** A client waits: until `wait` is over, it leaves, or its place is another's. */
  async #whileWaiting(client: WaitingClient, wait: (over: AbortSignal) => Promise<void>): Promise<void> {
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

  async #arrived(files: Manifest['files'], arrival: Arrival, over: AbortSignal): Promise<void> {
    const { store } = this.#deps
    const until = performance.now() + (this.#limits.holdMs ?? HOLD_MS)
    let wake = (): void => undefined
    let isNews = false
    const tell = (): void => {
      isNews = true
      wake()
    }
    let ended: { readonly error: Error | undefined } | undefined
    void arrival.over.then((error) => {
      ended = { error }
      tell()
    })
    over.addEventListener('abort', tell)
    const followers = files.map(({ digest }) => store.followPartial(digest, tell))
    try {
      for (;;) {
        isNews = false
        // read before the store is, since the blobs may arrive there in between
        const end = ended
        if ((await this.#missing(files)).length === 0) return
        if (end !== undefined) throw unavailable(end.error ?? new Error('it is over, and not everything is here'))
        over.throwIfAborted()
        const leftMs = until - performance.now()
        if (leftMs <= 0) throw later('the model is being fetched')
        if (isNews) continue
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.min(leftMs, LOOK_MS))
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    } finally {
      over.removeEventListener('abort', tell)
      for (const follower of followers) follower.close()
    }
  }
}

const FETCHES: ReadonlySet<Job['kind']> = new Set(['ensure', 'import-bt'])

/** What the OCI manifest depends on, beyond the digests in ours: the model config, and tars, which are unpacked. */
const isDescribing = ({ kind }: Manifest['files'][number]): boolean =>
  kind === 'config' || kind === 'tokenizer' || kind === 'adapter'

const asError = (error: Error): Error => error
const tooMany = (): NotNowError => later('as many clients as may be are waiting', 10)
const unavailable = (error: Error): NotNowError =>
  new NotNowError(503, 'E_SOURCE_UNAVAILABLE', `the swarm did not give it: ${error.message}`, 30)
