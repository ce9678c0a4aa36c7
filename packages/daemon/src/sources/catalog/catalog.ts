import type { CatalogSearch, CatalogStatus, ImportCatalogBody, Job } from '@svc/client/protocol'
import { createHub, type Hub, HubError, type HubOptions } from '@svc/hub'
import { within } from '@svc/internal-clock'
import { KeyedLock } from '@svc/internal-concurrency'
import { HttpClient } from '@svc/internal-http'
import { DialGuard, type DialPolicy, policyOfNamer } from '@svc/internal-net'
import { TRANSFER_NICE } from '@svc/internal-workers'
import {
  type ArtifactState,
  checkedHints,
  heldBackReason,
  type Importer,
  type ImportSelection,
  importSelectionOf,
  isPeerAddress,
  type Library,
  oneChunk,
  type Room,
  targetFor,
  verdictOf,
  type Work,
  withMark
} from '@svc/library/parts'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { V1Swarm } from '@svc/swarm-v1'
import { configuredAddress } from '../../config/address.ts'
import type { CatalogConfig, HubConfig, SwarmConfig } from '../../config/config.ts'
import { DaemonError } from '../../errors.ts'
import { importOutcome } from '../../jobs/import-jobs.ts'
import type { JobOutcome } from '../../jobs/job-work.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { HubDocumentReader } from '../hub/hub-documents.ts'
import { OwnersHub } from '../hub/owners-hub.ts'
import { type Anchor, findAnchor } from './anchor.ts'
import { CatalogDocumentReader } from './catalog-documents.ts'
import type { ListedTorrent } from './listing.ts'
import { CatalogProvider } from './provider.ts'
import { CatalogPull, type Pulled, type PullTimings } from './pull.ts'
import { parseV1Seed, type V1Seed, V1Seeds } from './seeds.ts'
import { linesOf, quantsRead, selectEntry } from './select.ts'
import { catalogSource } from './source.ts'

export interface CatalogDeps
  extends Pick<Library, 'clock' | 'store' | 'artifacts' | 'needed' | 'leafLayers' | 'holdings' | 'trust' | 'log'> {
  readonly config: { readonly catalog: CatalogConfig; readonly hub: HubConfig; readonly swarm: SwarmConfig }
  readonly room: Pick<Room, 'require'>
  readonly importer: Importer
  readonly jobs: JobRegistry
}

export interface CatalogOptions {
  readonly timings?: Partial<PullTimings>
  /** For the hub that anchors come from. */
  readonly retry?: HubOptions['retry']
}

/** A torrent, and the artifacts that came from it. */
interface TorrentArtifacts {
  readonly seed: V1Seed
  readonly manifests: Set<Sha256Digest>
}

const REPO = /^[^/\s]{1,96}\/[^/\s]{1,96}$/
const ANCHOR_TIMEOUT_MS = 60_000

/** Anchored pulls of community torrents, and the seeding of their files (docs/catalog.md). */
export class Catalog {
  readonly #context: CatalogDeps
  readonly #timings: PullTimings
  readonly #web: HttpClient
  readonly #provider: CatalogProvider | undefined
  readonly #hubs: OwnersHub
  readonly #documents = new CatalogDocumentReader()
  readonly #hubDocuments = new HubDocumentReader()
  #swarm: Promise<V1Swarm> | undefined
  #listening: V1Swarm | undefined
  #seeds: V1Seeds | undefined
  /** By infohash. */
  readonly #origins = new Map<string, TorrentArtifacts>()
  /** Infohashes of pulls under way. */
  readonly #pulls = new Set<string>()
  readonly #turns = new KeyedLock()
  #closed = false

  constructor(context: CatalogDeps, options: CatalogOptions = {}) {
    const { config, artifacts, log, clock } = context
    this.#context = context
    this.#web = new HttpClient({ clock })
    artifacts.listen((manifestDigest) => {
      this.withhold(manifestDigest).catch((error: unknown) =>
        log.error(
          { err: error, manifest: manifestDigest },
          'it is unknown whether a BitTorrent v1 torrent may be seeded'
        )
      )
    })
    this.#timings = {
      metadataTimeoutMs: 120_000,
      webAfterMs: 10_000,
      fillTimeoutMs: config.swarm.fillTimeoutMs,
      tickMs: 250,
      checkpointMs: 2_000,
      ...options.timings
    }
    const { endpoint } = config.catalog
    const { parse } = this.#documents
    this.#provider = endpoint === undefined ? undefined : new CatalogProvider(endpoint, this.#web, clock, parse)
    this.#hubs = new OwnersHub(config.hub, {
      threadNice: TRANSFER_NICE,
      readDocument: this.#hubDocuments.parse,
      ...(options.retry && { retry: options.retry })
    })
  }

  /** Rejoins the torrents of earlier pulls; after `[swarm] seed` was turned off, leaves them. */
  async start(): Promise<void> {
    const { artifacts, log } = this.#context
    for await (const artifact of artifacts.list(
      (error) => log.warn({ err: error }, 'a corrupt artifact state is left alone'),
      { cached: true }
    ))
      this.#learn(artifact)
    for (const infohash of this.#origins.keys()) {
      try {
        await this.#settle(infohash)
      } catch (error) {
        log.warn({ err: error, infohash }, 'a BitTorrent v1 torrent cannot be seeded')
      }
    }
  }

  /** After an artifact's standing or need changed: leaves or rejoins the BitTorrent v1 swarm that it came from. */
  async withhold(manifestDigest: Sha256Digest): Promise<void> {
    const artifact = await this.#context.artifacts.ifReadable(manifestDigest)
    const infohash = artifact && this.#learn(artifact)
    if (infohash !== undefined) await this.#settle(infohash)
  }

  /** Notes which torrent an artifact came from. @returns its infohash */
  #learn({ manifestDigest, source }: ArtifactState): string | undefined {
    const seed = parseV1Seed(source.bittorrentV1)
    if (seed === undefined) return undefined
    const manifests = this.#origins.get(seed.infohash)?.manifests ?? new Set<Sha256Digest>()
    this.#origins.set(seed.infohash, { seed, manifests: manifests.add(manifestDigest) })
    return seed.infohash
  }

  /** Joins or leaves a torrent, depending on whether its files may leave now; runs again after a change made meanwhile. */
  #settle(infohash: string): Promise<void> {
    return this.#turns.run(infohash, undefined, async () => {
      const origin = this.#origins.get(infohash)
      if (origin === undefined || this.#closed) return
      // a client can join a torrent once: when a pull is over this runs again
      if (!this.#pulls.has(infohash) && (await this.#mayGive(origin))) await (await this.#seeding()).add(origin.seed)
      else await this.#seeds?.remove(infohash)
    })
  }

  /** None of a torrent's artifacts is withheld, and one is needed. */
  async #mayGive({ manifests }: TorrentArtifacts): Promise<boolean> {
    const { artifacts, needed, config } = this.#context
    let isNeeded = false
    for (const manifest of manifests) {
      const standing = await artifacts.standing(manifest)
      if (standing === undefined) manifests.delete(manifest)
      else if (heldBackReason(standing, config.swarm) !== undefined) return false
      else isNeeded ||= await needed.isGiven(manifest)
    }
    return isNeeded
  }

  async search(terms: string, names?: 'normalized'): Promise<CatalogSearch> {
    const listed = await this.#listings().search(terms)
    return {
      entries: quantsRead(listed, names === 'normalized').map(
        ({ repo, displayName, quant, sizeLabel, seeds, infohash }) => ({
          repo,
          name: displayName,
          quant,
          sizeLabel,
          seeds,
          infohash: `btih:${infohash}`
        })
      )
    }
  }

  status(): CatalogStatus {
    const torrents = this.#seeds?.status() ?? []
    const address = this.#listening?.address
    return {
      torrents,
      peers: torrents.reduce((sum, torrent) => sum + torrent.peers, 0),
      upBytesPerSecond: torrents.reduce((sum, torrent) => sum + torrent.upBytesPerSecond, 0),
      ...(address && { peerAddress: `${address.host}:${address.port}` })
    }
  }

  async importCatalog(body: ImportCatalogBody): Promise<Job> {
    if (!REPO.test(body.repo)) {
      throw new DaemonError('E_BAD_REQUEST', 'the field "repo" must be "owner/name", as the catalog lists it')
    }
    const repo = targetFor(body)
    const asked = importSelectionOf(body)
    const peers = checkedHints(body.peers ?? [], 'peers', '"host:port"', isPeerAddress)
    const provider = this.#listings()
    const listing = await provider.search(body.repo)
    const entry = await this.#withOuterTrackers(selectEntry(listing, body.repo, body.quant, asked))
    // a torrent has one weights file, which is already chosen here
    const selection = { ...asked, quants: undefined, files: undefined }
    const lines = linesOf(listing, body.repo, asked.normalizedNames)
    const notChosen = asked.quants === undefined && asked.files === undefined ? undefined : lines.length - 1
    const signed = await this.#hubs.now()
    const { clock, jobs } = this.#context
    const trustCatalog = body.trustCatalog ?? false
    const anchor = await within(clock, ANCHOR_TIMEOUT_MS, undefined, (signal) =>
      findAnchor(entry, { ...signed, clock, provider, trustCatalog, signal })
    )
    return jobs.start(
      { kind: 'import-catalog', ref: entry.repo, as: formatRepoId(repo), filesTotal: 1 },
      async (job) => {
        const { hub } = signed
        const { result, ...outcome } = await this.#import(entry, { anchor, hub }, repo, peers, selection, job)
        return { ...outcome, ...(result && { result: { ...result, ...(notChosen !== undefined && { notChosen }) } }) }
      }
    )
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listening = undefined
    await this.#seeds?.close()
    await (await this.#swarm?.catch(() => undefined))?.close()
    await this.#hubs.close()
    await this.#web.close()
    await this.#documents.close()
    await this.#hubDocuments.close()
  }

  async #import(
    entry: ListedTorrent,
    { anchor, hub }: { readonly anchor: Anchor; readonly hub: Hub },
    repo: RepoId,
    peers: readonly string[],
    selection: ImportSelection,
    job: Work
  ): Promise<JobOutcome> {
    const { clock, store, importer, config, trust } = this.#context
    const { infohash } = entry
    const provenance = withMark(anchor.provenance, selection.private, clock)
    const isGiven = heldBackReason({ provenance }, config.swarm) === undefined
    const rule = trust.ruleFor({ typed: [formatRepoId(repo)], claimed: [entry.repo, anchor.repo] })
    const upload = isGiven && rule?.mode !== 'require'
    const quiet = !verdictOf({ provenance }, 'swarm', config.swarm).given
    const swarm = await this.#started()
    const web = await this.#webSources(entry, anchor, hub)
    this.#pulls.add(infohash)
    try {
      await this.#settle(infohash)
      const { mayEvict } = selection
      const how = { entry, anchor, peers, webSources: web, timings: this.#timings, upload, quiet, mayEvict }
      const pulled = await new CatalogPull({ ...this.#context, swarm, ...how }, job).run()
      const seed = await this.#seedOf(entry, pulled)
      const source = catalogSource(store, entry, anchor, pulled, seed)
      return importOutcome(await importer.run({ repo, selection, source }, job))
    } finally {
      this.#pulls.delete(infohash)
      // a model that must not be shared is not seeded again, however the pull ends
      if (isGiven) await this.#settle(infohash)
      for (const source of web) if (source !== hub) await source.close()
    }
  }

  /** The listing's webseed, which serves the hub's paths on its own origin, and the hub. */
  async #webSources(entry: ListedTorrent, anchor: Anchor, hub: Hub): Promise<Hub[]> {
    const sources: Hub[] = anchor.kind === 'hub' ? [hub] : []
    const suffix = `/${entry.repo}/resolve/${entry.webseed?.revision}`
    if (!entry.webseed?.url.endsWith(suffix)) return sources
    const endpoint = entry.webseed.url.slice(0, -suffix.length)
    if (endpoint === hub.endpoint.replace(/\/$/, '')) return sources
    if (!URL.canParse(endpoint)) return sources
    // a catalog on the internet must not direct this node into its own network: such connections are refused.
    const policy = await this.#policy()
    const readDocument = this.#hubDocuments.parse
    try {
      return [createHub({ endpoint, policy, threadNice: TRANSFER_NICE, readDocument }), ...sources]
    } catch (error) {
      // a URL with credentials, for example: an entry of the listing may add a source, but never makes the pull fail
      if (error instanceof HubError) return sources
      throw error
    }
  }

  async #seedOf(entry: ListedTorrent, { layout, files }: Pulled): Promise<V1Seed | undefined> {
    if (layout === undefined) return undefined
    const { info } = layout
    const { digest } = await this.#context.store.ingest(oneChunk(info), { sizeBytes: info.length })
    let at = 0
    return {
      infohash: entry.infohash,
      info: digest,
      trackers: entry.trackers,
      files: layout.files.map((file) => (file.pad ? null : files[at++]!.digest))
    }
  }

  /** A catalog on the internet must not direct this node to trackers inside its own network. */
  async #withOuterTrackers(entry: ListedTorrent): Promise<ListedTorrent> {
    const guard = new DialGuard(await this.#policy())
    const refused = await Promise.all(entry.trackers.map((url) => !URL.canParse(url) || guard.refuses(hostOf(url))))
    return { ...entry, trackers: entry.trackers.filter((_, index) => !refused[index]) }
  }

  /** For addresses that the catalog names. */
  async #policy(): Promise<Exclude<DialPolicy, 'owner'>> {
    const { endpoint } = this.#context.config.catalog
    return endpoint === undefined ? 'internet' : policyOfNamer(hostOf(endpoint))
  }

  #listings(): CatalogProvider {
    if (this.#provider) return this.#provider
    throw new DaemonError(
      'E_SOURCE_UNAVAILABLE',
      'no catalog is configured: set endpoint under [catalog] in the configuration and start the daemon again',
      { status: 502 }
    )
  }

  #started(): Promise<V1Swarm> {
    if (this.#closed) throw new DaemonError('E_SHUTTING_DOWN', 'the daemon is stopping')
    const { swarm, catalog } = this.#context.config
    const { host } = configuredAddress(swarm.peerAddr, '[swarm] peer_addr')
    this.#swarm ??= (async () =>
      V1Swarm.start({
        // another port, since the v2 engine has the configured one.
        peerAddress: { host, port: 0 },
        dht: swarm.dht ? (swarm.dhtBootstrap ?? true) : false,
        // if the catalog itself has a private address, what it lists may, too (a mirror in the LAN, a test).
        policy: await this.#policy(),
        uploadLimitBytesPerSecond: catalog.uploadLimitBytesPerSecond,
        parse: (info, infohash) => this.#documents.parse('v1Torrent', info, infohash),
        onFault: ({ thread, error, count, pauseMs }) =>
          this.#context.log.warn(
            { err: error, thread, count, pauseMs },
            'the BitTorrent v1 thread crashed or hung, and starts again'
          )
      }))()
    this.#swarm.catch(() => {
      this.#swarm = undefined
    })
    return this.#swarm
  }

  async #seeding(): Promise<V1Seeds> {
    const swarm = await this.#started()
    this.#listening = swarm
    const { store, log } = this.#context
    this.#seeds ??= new V1Seeds(store, swarm, log, this.#documents.parse)
    return this.#seeds
  }
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
