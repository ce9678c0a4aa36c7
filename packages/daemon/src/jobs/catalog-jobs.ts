import type { Catalog, CatalogDeps, CatalogOptions } from '@svc/catalog/parts'
import type { CatalogSearch, CatalogStatus, ImportCatalogBody, Job } from '@svc/client/protocol'
import { type Importer, LibraryError, targetFor } from '@svc/library/parts'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import { hubTokenName } from '../advice.ts'
import { configuredAddress } from '../config/address.ts'
import type { DaemonConfig } from '../config/config.ts'
import { importOutcome } from './import-jobs.ts'
import type { JobRegistry } from './registry.ts'

export interface CatalogJobsDeps extends CatalogDeps {
  readonly config: Pick<DaemonConfig, 'catalog' | 'hub' | 'swarm'>
  readonly importer: Importer
  readonly jobs: JobRegistry
  readonly downloads: CatalogOptions['downloads']
}

/** The catalog of rescued models behind the API. It is loaded where one is configured, or something came from one. */
export class CatalogJobs {
  readonly #deps: CatalogJobsDeps
  readonly #more: Pick<CatalogOptions, 'timings' | 'retry'>
  #loading: Promise<Catalog> | undefined
  #catalog: Catalog | undefined

  constructor(deps: CatalogJobsDeps, more: Pick<CatalogOptions, 'timings' | 'retry'> = {}) {
    this.#deps = deps
    this.#more = more
  }

  /** Rejoins the torrents of earlier pulls; after `[swarm] seed` was turned off, leaves them. */
  async start(): Promise<void> {
    if (this.#deps.config.catalog.endpoint !== undefined || (await this.#hasTorrents()))
      await (await this.#load()).start()
  }

  /** After an artifact's standing or need changed. */
  async withhold(manifestDigest: Sha256Digest): Promise<void> {
    await this.#catalog?.withhold(manifestDigest)
  }

  status(): CatalogStatus {
    return this.#catalog?.status() ?? { torrents: [], peers: 0, upBytesPerSecond: 0 }
  }

  async search(words: string, names?: 'normalized'): Promise<CatalogSearch> {
    return { entries: await (await this.#configured()).search(words, names) }
  }

  async importCatalog(body: ImportCatalogBody): Promise<Job> {
    const catalog = await this.#configured()
    const repo = targetFor(body)
    const chosen = await catalog.choose(body)
    const { selection, notChosen } = chosen
    const { jobs, importer } = this.#deps
    const start = { kind: 'import-catalog', ref: chosen.entry.repo, as: formatRepoId(repo), filesTotal: 1 } as const
    return jobs.start(start, async (work) => {
      const source = await catalog.pull(chosen, repo, work)
      const imported = await importer.run({ repo, selection, source }, work)
      return importOutcome({ ...imported, ...(notChosen !== undefined && { notChosen }) })
    })
  }

  async close(): Promise<void> {
    await (await this.#loading?.catch(() => undefined))?.close()
  }

  /** @throws LibraryError `E_SOURCE_UNAVAILABLE` */
  async #configured(): Promise<Catalog> {
    if (this.#deps.config.catalog.endpoint !== undefined) return this.#load()
    throw new LibraryError('E_SOURCE_UNAVAILABLE', 'no catalog is configured', { advice: { to: 'configure-catalog' } })
  }

  #load(): Promise<Catalog> {
    this.#loading ??= this.#open()
    return this.#loading
  }

  async #open(): Promise<Catalog> {
    const { catalog, hub, swarm } = this.#deps.config
    const { Catalog } = await import('@svc/catalog/parts')
    this.#catalog = new Catalog(this.#deps, {
      ...this.#more,
      endpoint: catalog.endpoint,
      hub,
      nameOf: (token) => hubTokenName(hub, token),
      sharing: swarm,
      peerHost: configuredAddress(swarm.peerAddr, '[swarm] peer_addr').host,
      dht: swarm.dht ? (swarm.dhtBootstrap ?? true) : false,
      uploadLimitBytesPerSecond: catalog.uploadLimitBytesPerSecond,
      downloads: this.#deps.downloads,
      fillTimeoutMs: swarm.fillTimeoutMs
    })
    return this.#catalog
  }

  /** Whether an earlier pull left a torrent to be seeded. */
  async #hasTorrents(): Promise<boolean> {
    const { artifacts } = this.#deps
    for await (const { source } of artifacts.list(() => undefined, { cached: true }))
      if (source.bittorrentV1 !== undefined) return true
    return false
  }
}
