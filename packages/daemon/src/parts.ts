import type { DiskBlobStore } from '@svc/cas'
import type {
  CatalogSearch,
  CatalogStatus,
  ImportBtBody,
  ImportCatalogBody,
  ImportHfBody,
  ImportPlan,
  Job,
  ShareResult,
  SwarmStatus
} from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import type { DaemonConfig } from './config/config.ts'
import type { Importer } from './import/importer.ts'
import type { Filler } from './jobs/fill.ts'
import type { JobRegistry } from './jobs/registry.ts'
import type { Artifacts } from './library/artifacts.ts'
import type { Documents } from './library/documents.ts'
import type { LeafLayers } from './library/leaf-layers.ts'
import type { Repos } from './library/repos.ts'
import type { Resolver } from './library/resolve.ts'
import type { Log } from './log.ts'
import type { Offload } from './offload/pool.ts'

/** What every part of the daemon may use. */
export interface DaemonContext {
  readonly config: DaemonConfig
  readonly log: Log
  readonly version: string
  readonly store: DiskBlobStore
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly documents: Documents
  readonly resolver: Resolver
  readonly jobs: JobRegistry
  readonly importer: Importer
  readonly leafLayers: LeafLayers
  readonly offload: Offload
}

export interface SwarmAddresses {
  readonly peer?: string
  readonly webseed?: string
}

/** The swarm client. Made only while `[swarm] enabled`. */
export interface SwarmPart {
  readonly filler: Filler
  /**
   * Joins what is complete. Resolves when the socket may listen: everything is joined, or ten seconds have passed and the rest
   * goes on behind (spec swarm.6). A failure of one artifact is logged, never thrown.
   */
  start(): Promise<void>
  /** POST /v1/import/bt; the body has passed its schema and nothing else. */
  importBt(body: ImportBtBody): Promise<Job>
  /** GET /v1/share. */
  share(request: { readonly ref: string; readonly manifestDigest: Sha256Digest }): Promise<ShareResult>
  status(): SwarmStatus
  addresses(): SwarmAddresses
  /** Called after every local, hub or catalog import. */
  imported(manifestDigest: Sha256Digest): void
  /** Leaves all swarms and closes the listeners. Jobs have ended before. Idempotent. */
  close(): Promise<void>
}

/** POST /v1/import/hf and its plan. Bodies have passed their schemas. */
export interface HubPart {
  importHf(body: ImportHfBody): Promise<Job>
  plan(body: ImportHfBody): Promise<ImportPlan>
  close(): Promise<void>
}

/** POST /v1/import/catalog and the search; also goes on seeding what it imported before. Made while `[swarm] enabled`. */
export interface CatalogPart {
  start(): Promise<void>
  importCatalog(body: ImportCatalogBody): Promise<Job>
  search(terms: string): Promise<CatalogSearch>
  status(): CatalogStatus
  close(): Promise<void>
}

/** How the parts are made. An absent one answers its documented refusal. */
export interface PartFactories {
  readonly swarm?: (context: DaemonContext) => SwarmPart | Promise<SwarmPart>
  readonly hub?: (context: DaemonContext) => HubPart | Promise<HubPart>
  readonly catalog?: (context: DaemonContext) => CatalogPart | Promise<CatalogPart>
}
