import {
  type AdoptBody,
  type AdoptPlan,
  type CatalogSearch,
  type ImportBtBody,
  type ImportCatalogBody,
  type ImportHfBody,
  type ImportHfPlanBody,
  type ImportLocalBody,
  type ImportOciBody,
  type ImportPlan,
  type Job,
  type OutdatedBody,
  ROUTES,
  type SearchQuery,
  type SearchResult
} from '@svc/client/protocol'
import type { Manifest } from '@svc/manifest'
import type { RepoId, Sha256Digest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import type { Documents } from '../../library/documents.ts'
import { digestsOf } from '../../library/open.ts'
import type { Resolver } from '../../library/resolve.ts'
import { catalogIsOff, noHub, swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Imports from the disks of this machine. */
export interface LocalImporter {
  importLocal(body: ImportLocalBody): Promise<Job>
  adopt(body: AdoptBody): Promise<Job>
  planAdopt(body: AdoptBody): Promise<AdoptPlan>
}

export const importLocalRoute = ({ local }: { readonly local: LocalImporter }) =>
  defineRoute(ROUTES.importLocal, ({ body }) => local.importLocal(body))

export const adoptRoute = ({ local }: { readonly local: LocalImporter }) =>
  defineRoute(ROUTES.adopt, ({ body }) => local.adopt(body))

export const adoptPlanRoute = ({ local }: { readonly local: LocalImporter }) =>
  defineRoute(ROUTES.adoptPlan, ({ body }) => local.planAdopt(body))

/** Imports from the model hub. */
export interface HubImporter {
  importHf(body: ImportHfBody): Promise<Job>
}

export const importHfRoute = ({ hub }: { readonly hub: HubImporter | undefined }) =>
  defineRoute(ROUTES.importHf, ({ body }) => (hub ?? noHub()).importHf(body))

/** Plans of imports from the hub. */
export interface HubPlans {
  plan(body: ImportHfPlanBody): Promise<ImportPlan>
}

export const importHfPlanRoute = ({ hub }: { readonly hub: HubPlans | undefined }) =>
  defineRoute(ROUTES.importHfPlan, ({ body }) => (hub ?? noHub()).plan(body))

/** Asks the hub for newer commits. */
export interface HubChecks {
  outdated(body: OutdatedBody): Promise<Job>
}

export const outdatedRoute = ({ hub }: { readonly hub: HubChecks | undefined }) =>
  defineRoute(ROUTES.outdated, ({ body }) => (hub ?? noHub()).outdated(body))

/** Imports from a BitTorrent v2 swarm, pinned to a digest. */
export interface BtImports {
  importBt(body: ImportBtBody): Promise<Job>
}

export const importBtRoute = ({ swarm }: { readonly swarm: BtImports | undefined }) =>
  defineRoute(ROUTES.importBt, ({ body }) => (swarm ?? swarmIsOff()).importBt(body))

/** Imports of models listed in the community catalog, verified against an anchor. */
export interface CatalogImports {
  importCatalog(body: ImportCatalogBody): Promise<Job>
}

export const importCatalogRoute = ({ catalog }: { readonly catalog: CatalogImports | undefined }) =>
  defineRoute(ROUTES.importCatalog, ({ body }) => (catalog ?? catalogIsOff()).importCatalog(body))

/** Imports of OCI artifacts. */
export interface OciArtifactImports {
  importOci(body: ImportOciBody): Promise<Job>
}

export const importOciRoute = ({ oci }: { readonly oci: OciArtifactImports }) =>
  defineRoute(ROUTES.importOci, ({ body }) => oci.importOci(body))

/** Searches the community catalog. */
export interface CatalogListings {
  search(terms: string, names?: 'normalized'): Promise<CatalogSearch>
}

export const catalogSearchRoute = ({ catalog }: { readonly catalog: CatalogListings | undefined }) =>
  defineRoute(ROUTES.catalogSearch, ({ query }) =>
    (catalog ?? catalogIsOff()).search(query.q, query.names === undefined ? undefined : 'normalized')
  )

/** Searches the model hub. */
export interface HubSearches {
  search(query: SearchQuery): Promise<SearchResult>
}

export const searchRoute = ({
  hub,
  catalog
}: {
  readonly hub: HubSearches | undefined
  readonly catalog: CatalogListings | undefined
}) =>
  defineRoute(ROUTES.search, async ({ query }): Promise<SearchResult> => {
    if (query.source !== 'catalog') return (hub ?? noHub()).search(query)
    const { entries } = await (catalog ?? catalogIsOff()).search(query.q, 'normalized')
    return { entries: [], catalog: entries }
  })

/** What lies beside artifacts that came from the hub. */
interface HubCompanions {
  companions(wanted: {
    readonly ref: string
    readonly repo: RepoId
    readonly manifestDigest: Sha256Digest
    readonly manifest: Manifest
  }): Job
}

export interface CompanionsRouteDeps {
  readonly resolver: Resolver
  readonly documents: Documents
  readonly hub: HubCompanions | undefined
}

export const companionsRoute = ({ resolver, documents, hub }: CompanionsRouteDeps) =>
  defineRoute(ROUTES.companions, async ({ body }) => {
    const resolved = await resolver.resolve(body.ref)
    const [manifestDigest] = digestsOf(resolved)
    const manifest = await documents.manifest(manifestDigest)
    if (manifest === undefined)
      throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    const { ref, ns, name } = resolved
    return (hub ?? noHub()).companions({ ref, repo: { ns, name }, manifestDigest, manifest })
  })
