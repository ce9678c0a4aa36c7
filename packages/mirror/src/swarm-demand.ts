import type { BlobReader } from '@svc/cas'
import { type ArtifactFolder, absentBlobs, type Documents } from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArrivingOptions, Proven } from './arriving-blob.ts'
import type { Demand, WaitingClient } from './demand.ts'
import { followed, toNotNow, type Visit, type Way } from './demand-jobs.ts'
import { Notifier } from './notifier.ts'
import { later, type RunningFetch, type RunningFetches } from './upstream.ts'

/** How long a manifest waits for the small files that it describes. Proxies give up on a head after a minute. */
export const HOLD_MS = 45_000
const SWARM: Way = { source: 'the swarm', isVerifiedLate: false }

/** Fetches artifacts through the swarm. Its errors have codes. */
export interface FillSource {
  /** Starts to fetch the missing files of an artifact. */
  fetchRest(manifestDigest: Sha256Digest): Promise<RunningFetch>
  /** Puts the blobs that clients wait for first. @returns what is proven of the first one, from `offset` on */
  reading(manifestDigest: Sha256Digest, digests: readonly Sha256Digest[], onNews: () => void, offset?: number): Proven
}

export interface SwarmDemandDeps {
  readonly demand: Demand
  readonly source: FillSource
  readonly jobs: Pick<RunningFetches, 'over' | 'fetchOf'>
  readonly documents: Documents
}

/** An artifact with its companions under a local name, which is for the allow-list. */
export interface Awaited extends ArtifactFolder {
  readonly name: string
}

/** What is here of an artifact whose manifest is here. */
export interface Presence {
  readonly files: Manifest['files']
  readonly missing: Manifest['files']
  /** Whether its OCI manifest can be made: it has every file whose content that depends on. */
  readonly isDescribed: boolean
}

/**
 * Fetches artifacts whose manifest is here, but not every blob, through the swarm for clients of the mirrors (spec
 * add.36). Clients follow running fetches, and may start one as far as the configuration allows.
 */
export class SwarmDemand {
  readonly #deps: SwarmDemandDeps
  readonly #demand: Demand

  constructor(deps: SwarmDemandDeps) {
    this.#deps = deps
    this.#demand = deps.demand
  }

  /** Undefined if even its manifest is absent. */
  async presence(manifest: Sha256Digest): Promise<Presence | undefined> {
    const files = (await this.#deps.documents.manifest(manifest))?.files
    if (files === undefined) return undefined
    const missing = await this.#missing(files)
    return { files, missing, isDescribed: !missing.some(isDescribing) }
  }

  /** Whether missing blobs of an artifact are arriving, or would be fetched on request. */
  offers({ name, manifest }: Awaited): boolean {
    return this.isUnderWay(manifest) || this.#demand.allows(name)
  }

  isUnderWay(manifest: Sha256Digest): boolean {
    return this.#demand.jobs?.has(manifest) === true || this.#deps.jobs.fetchOf(manifest) !== undefined
  }

  /**
   * Waits for the files that the OCI manifest is made from: the model config, and members of tars. With `mayStart`,
   * starts a fetch of the artifact if there is none. @returns false if it cannot be fetched, or no missing blob could
   * be. @throws NotNowError
   */
  async described(awaited: Awaited, presence: Presence, mayStart: boolean, client: WaitingClient): Promise<boolean> {
    if (presence.isDescribed) return presence.missing.length === 0 || this.offers(awaited)
    const visit = await this.#visit(awaited, mayStart, client.host)
    if (visit === undefined) return false
    const wanted = presence.missing.filter(isDescribing)
    try {
      await this.#demand.whileWaiting(client, (over) => this.#arrived(awaited.manifest, wanted, visit, over))
    } finally {
      visit.leave()
    }
    return true
  }

  /** A blob that is read as it arrives, from `start` on; undefined if it cannot be fetched. @throws NotNowError */
  async open(
    awaited: Awaited,
    blob: Pick<BlobReader, 'digest' | 'sizeBytes'>,
    start: number,
    client: WaitingClient,
    options: Pick<ArrivingOptions, 'mayRead' | 'inParts'>
  ): Promise<BlobReader | undefined> {
    const visit = await this.#visit(awaited, true, client.host)
    if (visit === undefined) return undefined
    const proven = (onNews: () => void): Proven =>
      this.#deps.source.reading(awaited.manifest, [blob.digest], onNews, start)
    return this.#demand.open(blob, visit, client, { ...options, proven, waitMs: 0 })
  }

  async #missing(files: Manifest['files']): Promise<Manifest['files']> {
    const absent = new Set((await absentBlobs(this.#demand.store, sizesOf(files))).digests)
    return files.filter(({ digest }) => absent.has(digest))
  }

  /** Joins or starts the fetch of an artifact; undefined if none is running and none may be started. @throws NotNowError */
  async #visit({ name, manifest }: Awaited, mayStart: boolean, host: string): Promise<Visit | undefined> {
    const { jobs, log } = this.#demand
    const known = await jobs?.join(manifest, host)
    if (known !== undefined) return known
    const job = this.#deps.jobs.fetchOf(manifest)
    if (job !== undefined) return followed(this.#deps.jobs, job.id)
    if (jobs === undefined || !mayStart || !this.#demand.allows(name)) return undefined
    const start = async (): Promise<RunningFetch> => {
      const started = await this.#deps.source.fetchRest(manifest)
      log.info({ job: started.id, name, manifest }, 'a client of the mirror asked for an incomplete model')
      return started
    }
    return jobs.bring({ key: manifest, way: SWARM, missingBytes: () => this.#missingBytes(manifest), start }, host)
  }

  async #missingBytes(manifest: Sha256Digest): Promise<number> {
    const { files = [] } = (await this.#deps.documents.manifest(manifest)) ?? {}
    return (await absentBlobs(this.#demand.store, sizesOf(files))).bytes
  }

  async #arrived(manifest: Sha256Digest, files: Manifest['files'], visit: Visit, over: AbortSignal): Promise<void> {
    const { clock } = this.#demand
    const until = clock.monotonic() + HOLD_MS
    const news = new Notifier(clock)
    let ended: { readonly error: Error | undefined } | undefined
    void visit.arrival.over.then((error) => {
      ended = { error }
      news.tell()
    })
    over.addEventListener('abort', news.tell)
    const digests = files.map(({ digest }) => digest)
    const reading = this.#deps.source.reading(manifest, digests, news.tell)
    try {
      for (;;) {
        news.clear()
        // read before the store is, since the blobs may arrive there in between
        const end = ended
        if ((await this.#missing(files)).length === 0) return
        if (end !== undefined)
          throw toNotNow(SWARM, end.error ?? new Error('the fetch has ended, but the model is not complete'))
        over.throwIfAborted()
        const leftMs = until - clock.monotonic()
        if (leftMs <= 0) throw later('the model is being fetched')
        await news.next(leftMs)
      }
    } finally {
      over.removeEventListener('abort', news.tell)
      reading.close()
    }
  }
}

const sizesOf = (files: Manifest['files']) => new Map(files.map(({ digest, size }) => [digest, size]))

/** What the OCI manifest depends on, beyond the digests in ours: the model config, and tars, which are unpacked. */
const isDescribing = ({ kind }: Manifest['files'][number]): boolean =>
  kind === 'config' || kind === 'tokenizer' || kind === 'adapter'
