import type { DiskBlobStore } from '@svc/cas'
import { isTerminal, type Job } from '@svc/client/protocol'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { OnDemandConfig } from '../config/config.ts'
import type { Documents } from '../library/documents.ts'
import type { Log } from '../log.ts'
import type { DayBudget } from './day-budget.ts'
import { type Arrival, GrowingBlob } from './growing-blob.ts'
import { allowsName, failureOf } from './on-demand.ts'
import { later, NotNowError, type UpstreamJobs } from './upstream.ts'

/** A manifest is sent when the small files are here that it describes. Proxies give up on a head after a minute. */
const HOLD_MS = 45_000
/** Limit of concurrent fills that clients caused. */
const MAX_FILLS = 4
/** After a failure, the same artifact is not tried again within this time. */
const FAILED_MS = 30_000
/** Limit of clients that wait, or read what is still arriving. */
const MAX_WAITING = 256
/** Blobs come in other ways as well, of which there is no event. */
const LOOK_MS = 1_000

/** What fetches artifacts through the swarm. Its errors have the API's codes. */
export interface FillSource {
  /** Starts to fetch what is missing of an artifact. */
  fill(manifestDigest: Sha256Digest): Promise<Job>
  /** Says which blobs are waited for: they are fetched first. */
  reading(manifestDigest: Sha256Digest, digests: Iterable<Sha256Digest>): { at(offset: number): void; close(): void }
}

/** The daemon's objects that this uses. */
export interface SwarmDemandDeps {
  readonly source: FillSource
  readonly jobs: UpstreamJobs & { list(): readonly Job[] }
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
  readonly #nowMs: () => number
  readonly #fills = new Map<Sha256Digest, Arrival>()
  readonly #failed = new Map<Sha256Digest, { readonly atMs: number; readonly error: Error }>()
  #fillsTotal = 0
  #waiting = 0

  constructor(deps: SwarmDemandDeps, limits: SwarmDemandLimits) {
    this.#deps = deps
    this.#limits = limits
    this.#nowMs = deps.nowMs ?? (() => performance.now())
  }

  figures(): SwarmDemandFigures {
    return {
      fills: this.#fills.size,
      fillsLimit: MAX_FILLS,
      fillsTotal: this.#fillsTotal,
      waiting: this.#waiting,
      waitingLimit: MAX_WAITING
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
    const { config } = this.#limits
    const isStarted = this.#fills.has(manifest) || this.#underWay(manifest) !== undefined
    return isStarted || (config !== undefined && allowsName(config, name))
  }

  /** The size of a blob that is a file of the artifact's manifest; undefined for other digests. */
  async sizeOf(manifestDigest: Sha256Digest, digest: Sha256Digest): Promise<number | undefined> {
    const manifest = await this.#deps.documents.manifest(manifestDigest)
    return manifest?.files.find((file) => file.digest === digest)?.size
  }

  /**
   * Waits for what the OCI manifest is made from: the model config, and what is unpacked from tars. With `mayStart` an
   * artifact that nobody fetches is fetched from now on. @returns false if it is not to be had. @throws NotNowError
   */
  async described({ name, manifest: digest }: Awaited, mayStart: boolean): Promise<boolean> {
    const manifest = await this.#deps.documents.manifest(digest)
    if (manifest === undefined) return false
    const wanted = manifest.files.filter(isDescribing)
    if ((await this.#missing(wanted)).length === 0) return true
    const arrival = await this.#arrivalOf({ name, manifest: digest }, mayStart)
    if (arrival === undefined) return false
    const reading = this.#deps.source.reading(
      digest,
      wanted.map((file) => file.digest)
    )
    try {
      await this.#whileWaiting(() => this.#arrived(wanted, arrival))
    } finally {
      reading.close()
    }
    return true
  }

  /** A blob that is read as it arrives, from `start` on; undefined if it is not to be had. @throws NotNowError */
  async open(
    { name, manifest }: Awaited,
    blob: { readonly digest: Sha256Digest; readonly sizeBytes: number },
    start: number
  ): Promise<GrowingBlob | undefined> {
    const arrival = await this.#arrivalOf({ name, manifest }, true)
    if (arrival === undefined) return undefined
    if (this.#waiting >= MAX_WAITING) throw tooMany()
    this.#waiting++
    const reading = this.#deps.source.reading(manifest, [blob.digest])
    reading.at(start)
    return new GrowingBlob(this.#deps.store, blob, arrival, {
      onRead: (offset) => reading.at(offset),
      onClose: () => {
        this.#waiting--
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
  async #arrivalOf({ name, manifest }: Awaited, mayStart: boolean): Promise<Arrival | undefined> {
    const known = this.#fills.get(manifest) ?? this.#underWay(manifest)
    if (known !== undefined) return known
    const { config, day } = this.#limits
    if (!mayStart || config === undefined || !allowsName(config, name)) return undefined
    const failed = this.#failed.get(manifest)
    if (failed !== undefined && this.#nowMs() - failed.atMs < FAILED_MS) throw unavailable(failed.error)
    this.#failed.delete(manifest)
    const document = await this.#deps.documents.manifest(manifest)
    const missing = await this.#missing(document?.files ?? [])
    // somebody may have come first
    const other = this.#fills.get(manifest) ?? this.#underWay(manifest)
    if (other !== undefined) return other
    if (this.#fills.size >= MAX_FILLS) throw later('as many models as may be are being fetched', 10)
    const missingBytes = missing.reduce((sum, { size }) => sum + size, 0)
    if (day?.trySpend(missingBytes) === false)
      throw new NotNowError(507, 'E_NO_SPACE', 'this mirror fetches no more on demand today ([mirror] on_demand_bytes)')
    const started = this.#start({ name, manifest }, config.timeoutMs)
    const arrival = { over: started.then((over) => over, asError) }
    this.#fills.set(manifest, arrival)
    void arrival.over.then((error) => {
      this.#fills.delete(manifest)
      if (error !== undefined) this.#fail(manifest, error)
    })
    return arrival
  }

  /** What the owner fetches. */
  #underWay(manifest: Sha256Digest): Arrival | undefined {
    const { jobs } = this.#deps
    const job = jobs.list().find((each) => each.manifest === manifest && FETCHES.has(each.kind) && !isTerminal(each))
    return job && { over: jobs.over(job.id).then(failureOf, asError) }
  }

  /** @returns when it is over, why it failed */
  async #start({ name, manifest }: Awaited, timeoutMs: number): Promise<Error | undefined> {
    const { source, jobs, log } = this.#deps
    const job = await source.fill(manifest)
    this.#fillsTotal++
    log.info({ job: job.id, name, manifest }, 'a client of the mirror asked for what is not complete here')
    const timer = setTimeout(() => void jobs.cancel(job.id).catch(() => undefined), timeoutMs).unref()
    try {
      return failureOf(await jobs.over(job.id))
    } finally {
      clearTimeout(timer)
    }
  }

  #fail(manifest: Sha256Digest, error: Error): void {
    if (this.#failed.size >= 1_000) this.#failed.clear()
    this.#failed.set(manifest, { atMs: this.#nowMs(), error })
  }

  async #whileWaiting(wait: () => Promise<void>): Promise<void> {
    if (this.#waiting >= MAX_WAITING) throw tooMany()
    this.#waiting++
    try {
      await wait()
    } finally {
      this.#waiting--
    }
  }

  async #arrived(files: Manifest['files'], arrival: Arrival): Promise<void> {
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
    const followers = files.map(({ digest }) => store.followPartial(digest, tell))
    try {
      for (;;) {
        isNews = false
        // read before the store is, since the blobs may arrive there in between
        const end = ended
        if ((await this.#missing(files)).length === 0) return
        if (end !== undefined) throw unavailable(end.error ?? new Error('it is over, and not everything is here'))
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
