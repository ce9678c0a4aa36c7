import { createHub, type Hub, HubError, type HubOptions } from '@svc/hub'
import { within } from '@svc/internal-clock'
import { HttpClient } from '@svc/internal-http'
import { DialGuard } from '@svc/internal-net'
import { TRANSFER_NICE } from '@svc/internal-workers'
import type { ImportChoice } from '@svc/library'
import {
  checkedHints,
  heldBackReason,
  type ImportSelection,
  type ImportSource,
  importSelectionOf,
  isPeerAddress,
  type Library,
  LibraryError,
  oneChunk,
  type Room,
  type SharingPolicy,
  verdictOf,
  type Work,
  withMark
} from '@svc/library/parts'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { type HubAccess, HubDocumentReader, OwnersHub, type OwnersHubOptions } from '@svc/sources/hub/parts'
import { type Anchor, findAnchor } from './anchor.ts'
import { CatalogDocumentReader } from './catalog-documents.ts'
import type { ListedTorrent } from './listing.ts'
import { CatalogProvider } from './provider.ts'
import { CatalogPull, type Pulled, type PullTimings } from './pull.ts'
import { CatalogSeeding, type SeedingStatus } from './seeding.ts'
import type { V1Seed } from './seeds.ts'
import { linesOf, quantsRead, selectEntry } from './select.ts'
import { type CatalogSwarmOptions, hostOf, namedBy, SharedSwarm } from './shared-swarm.ts'
import { catalogSource } from './source.ts'

export interface CatalogDeps
  extends Pick<Library, 'clock' | 'store' | 'artifacts' | 'needed' | 'leafLayers' | 'holdings' | 'trust' | 'log'> {
  readonly room: Pick<Room, 'require'>
}

export interface CatalogOptions extends CatalogSwarmOptions, Pick<OwnersHubOptions, 'nameOf'> {
  /** Of a catalog in the public provider's format; undefined: earlier pulls are seeded, and nothing is searched. */
  readonly endpoint: string | undefined
  /** The hub that anchors come from. */
  readonly hub: HubAccess
  /** Asked at each decision. */
  readonly sharing: SharingPolicy
  /** After this long without a byte from any source a pull fails. */
  readonly fillTimeoutMs: number
  readonly timings?: Partial<PullTimings>
  readonly retry?: HubOptions['retry']
}

/** A model of the catalog, as it is asked for. */
export interface CatalogRequest extends ImportChoice {
  /** `owner/name`, as listed. */
  readonly repo: string
  /** Which GGUF of the repository. */
  readonly quant?: string | undefined
  /** Accepts the catalog's own record of a model that is gone from the hub. */
  readonly trustCatalog?: boolean | undefined
  /** `host:port` of peers. */
  readonly peers?: readonly string[] | undefined
}

/** A torrent of a catalog, as its provider lists it, unverified. */
export interface FoundTorrent {
  /** `owner/name` */
  readonly repo: string
  /** Of the file, or of the torrent. */
  readonly name: string
  readonly quant: string
  /** As the provider prints it. */
  readonly sizeLabel: string
  readonly seeds: number
  /** `btih:<40 hex>` */
  readonly infohash: string
}

/** The torrent of a request, and what its bytes must be. */
export interface ChosenTorrent {
  readonly entry: ListedTorrent
  readonly anchor: Anchor
  readonly hub: Hub
  readonly peers: readonly string[]
  readonly selection: ImportSelection
  /** Torrents of the repository that the choice left out, where there was one. */
  readonly notChosen: number | undefined
}

const REPO = /^[^/\s]{1,96}\/[^/\s]{1,96}$/
const ANCHOR_TIMEOUT_MS = 60_000

/** Anchored pulls of community torrents, and the seeding of their files (docs/catalog.md). */
export class Catalog {
  readonly #deps: CatalogDeps
  readonly #options: CatalogOptions
  readonly #timings: PullTimings
  readonly #web: HttpClient
  readonly #provider: CatalogProvider | undefined
  readonly #hubs: OwnersHub
  readonly #documents = new CatalogDocumentReader()
  readonly #hubDocuments = new HubDocumentReader()
  readonly #swarm: SharedSwarm
  readonly #seeding: CatalogSeeding

  /** @throws HubError when the endpoint or the token of the hub is invalid */
  constructor(deps: CatalogDeps, options: CatalogOptions) {
    const { clock } = deps
    const { endpoint, hub, sharing, fillTimeoutMs, nameOf, retry, downloads } = options
    this.#deps = deps
    this.#options = options
    this.#web = new HttpClient({ clock, downloads })
    this.#timings = { ...TIMINGS, fillTimeoutMs, ...options.timings }
    const documents = this.#documents
    this.#provider =
      endpoint === undefined ? undefined : new CatalogProvider(endpoint, this.#web, clock, documents.parse)
    this.#hubs = new OwnersHub(hub, {
      threadNice: TRANSFER_NICE,
      readDocument: this.#hubDocuments.parse,
      ...(nameOf && { nameOf }),
      ...(retry && { retry }),
      downloads
    })
    this.#swarm = new SharedSwarm({ ...options, log: deps.log, documents })
    this.#seeding = new CatalogSeeding({ ...deps, swarm: this.#swarm, documents, sharing })
  }

  /** Rejoins the torrents of earlier pulls; leaves them after sharing was turned off. */
  start(): Promise<void> {
    return this.#seeding.start()
  }

  /** After an artifact's standing or need changed: leaves or rejoins the swarm that it came from. */
  withhold(manifestDigest: Sha256Digest): Promise<void> {
    return this.#seeding.withhold(manifestDigest)
  }

  status(): SeedingStatus {
    return this.#seeding.status()
  }

  /** @throws LibraryError `E_SOURCE_UNAVAILABLE` */
  async search(terms: string, names?: 'normalized'): Promise<FoundTorrent[]> {
    const listed = await this.#listings().search(terms)
    return quantsRead(listed, names === 'normalized').map(
      ({ repo, displayName: name, quant, sizeLabel, seeds, infohash }) => ({
        repo,
        name,
        quant,
        sizeLabel,
        seeds,
        infohash: `btih:${infohash}`
      })
    )
  }

  /** @throws LibraryError `E_INVALID`; as {@link selectEntry} and {@link findAnchor} */
  async choose(request: CatalogRequest): Promise<ChosenTorrent> {
    const { repo, quant, trustCatalog = false } = request
    if (!REPO.test(repo))
      throw new LibraryError('E_INVALID', 'the field "repo" must be "owner/name", as the catalog lists it')
    const asked = importSelectionOf(request)
    const peers = checkedHints(request.peers ?? [], 'peers', '"host:port"', isPeerAddress)
    const provider = this.#listings()
    const listing = await provider.search(repo)
    const entry = await this.#withOuterTrackers(selectEntry(listing, repo, quant, asked))
    const lines = linesOf(listing, repo, asked.normalizedNames)
    const isChoice = asked.quants !== undefined || asked.files !== undefined
    const signed = await this.#hubs.now()
    const { clock } = this.#deps
    const anchor = await within(clock, ANCHOR_TIMEOUT_MS, undefined, (signal) =>
      findAnchor(entry, { ...signed, clock, provider, trustCatalog, signal })
    )
    return {
      entry,
      anchor,
      hub: signed.hub,
      peers,
      // a torrent has one weights file, which is already chosen here
      selection: { ...asked, quants: undefined, files: undefined },
      notChosen: isChoice ? lines.length - 1 : undefined
    }
  }

  /** Brings a torrent's files into the store. The torrent is seeded, if it may be, after the source is closed. @throws as `CatalogPull.run` */
  async pull(chosen: ChosenTorrent, as: RepoId, work: Work): Promise<ImportSource> {
    const { clock, store, trust } = this.#deps
    const { sharing } = this.#options
    const { entry, anchor, hub, peers, selection } = chosen
    const provenance = withMark(anchor.provenance, selection.private, clock)
    const isGiven = heldBackReason({ provenance }, sharing) === undefined
    const rule = trust.ruleFor({ typed: [formatRepoId(as)], claimed: [entry.repo, anchor.repo] })
    const upload = isGiven && rule?.mode !== 'require'
    const quiet = !verdictOf({ provenance }, 'swarm', sharing).given
    const swarm = await this.#swarm.get()
    const web = await this.#webSources(entry, anchor, hub)
    const close = async (): Promise<void> => {
      await this.#seeding.endPull(entry.infohash, isGiven)
      for (const source of web) if (source !== hub) await source.close()
    }
    try {
      await this.#seeding.beginPull(entry.infohash)
      const { mayEvict } = selection
      const how = { entry, anchor, peers, webSources: web, timings: this.#timings, upload, quiet, mayEvict }
      const pulled = await new CatalogPull({ ...this.#deps, swarm, ...how }, work).run()
      const seed = await this.#seedOf(entry, pulled)
      return { ...catalogSource(store, entry, anchor, pulled, seed), close }
    } catch (error) {
      await close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#seeding.close()
    await this.#swarm.close()
    await this.#hubs.close()
    await this.#web.close()
    await this.#documents.close()
    await this.#hubDocuments.close()
  }

  /** The listing's webseed, which serves the hub's paths on its own origin, and the hub. */
  async #webSources(entry: ListedTorrent, anchor: Anchor, hub: Hub): Promise<Hub[]> {
    const sources: Hub[] = anchor.kind === 'hub' ? [hub] : []
    const suffix = `/${entry.repo}/resolve/${entry.webseed?.revision}`
    if (!entry.webseed?.url.endsWith(suffix)) return sources
    const endpoint = entry.webseed.url.slice(0, -suffix.length)
    if (endpoint === hub.endpoint.replace(/\/$/, '')) return sources
    if (!URL.canParse(endpoint)) return sources
    const { downloads } = this.#options
    const policy = await namedBy(this.#options.endpoint)
    const readDocument = this.#hubDocuments.parse
    try {
      return [createHub({ endpoint, policy, threadNice: TRANSFER_NICE, readDocument, downloads }), ...sources]
    } catch (error) {
      // a URL with credentials, for example: an entry of the listing may add a source, but never makes the pull fail
      if (error instanceof HubError) return sources
      throw error
    }
  }

  async #seedOf(entry: ListedTorrent, { layout, files }: Pulled): Promise<V1Seed | undefined> {
    if (layout === undefined) return undefined
    const { info } = layout
    const { digest } = await this.#deps.store.ingest(oneChunk(info), { sizeBytes: info.length })
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
    const guard = new DialGuard(await namedBy(this.#options.endpoint))
    const refused = await Promise.all(entry.trackers.map((url) => !URL.canParse(url) || guard.refuses(hostOf(url))))
    return { ...entry, trackers: entry.trackers.filter((_, index) => !refused[index]) }
  }

  #listings(): CatalogProvider {
    if (this.#provider) return this.#provider
    throw new LibraryError('E_INVALID', 'this catalog has no endpoint')
  }
}

const TIMINGS = { metadataTimeoutMs: 120_000, webAfterMs: 10_000, tickMs: 250, checkpointMs: 2_000 }
