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
import type { Documents } from '../../library/documents.ts'
import { digestsOf } from '../../library/open.ts'
import type { Resolver } from '../../library/resolve.ts'
import { catalogIsOff, noHub, swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Where models come from. What is undefined is off. */
export interface ImportRoutesDeps {
  readonly resolver: Resolver
  readonly documents: Documents
  readonly local: {
    importLocal(body: ImportLocalBody): Promise<Job>
    adopt(body: AdoptBody): Promise<Job>
    planAdopt(body: AdoptBody): Promise<AdoptPlan>
  }
  readonly hub:
    | {
        importHf(body: ImportHfBody): Promise<Job>
        plan(body: ImportHfPlanBody): Promise<ImportPlan>
        outdated(body: OutdatedBody): Promise<Job>
        search(query: SearchQuery): Promise<SearchResult>
        /** What lies beside an artifact. */
        companions(wanted: {
          readonly ref: string
          readonly repo: RepoId
          readonly manifestDigest: Sha256Digest
          readonly manifest: Manifest
        }): Job
      }
    | undefined
  readonly swarm: { importBt(body: ImportBtBody): Promise<Job> } | undefined
  readonly catalog: CatalogImports | undefined
  readonly oci: { importOci(body: ImportOciBody): Promise<Job> }
}

interface CatalogImports {
  importCatalog(body: ImportCatalogBody): Promise<Job>
  search(terms: string, names?: 'normalized'): Promise<CatalogSearch>
}

export const importRoutes = ({ resolver, documents, local, hub, swarm, catalog, oci }: ImportRoutesDeps) => ({
  importLocal: defineRoute(ROUTES.importLocal, ({ body }) => local.importLocal(body)),
  adopt: defineRoute(ROUTES.adopt, ({ body }) => local.adopt(body)),
  adoptPlan: defineRoute(ROUTES.adoptPlan, ({ body }) => local.planAdopt(body)),
  importHf: defineRoute(ROUTES.importHf, ({ body }) => (hub ?? noHub()).importHf(body)),
  importHfPlan: defineRoute(ROUTES.importHfPlan, ({ body }) => (hub ?? noHub()).plan(body)),
  outdated: defineRoute(ROUTES.outdated, ({ body }) => (hub ?? noHub()).outdated(body)),
  importBt: defineRoute(ROUTES.importBt, ({ body }) => (swarm ?? swarmIsOff()).importBt(body)),
  importCatalog: defineRoute(ROUTES.importCatalog, ({ body }) => (catalog ?? catalogIsOff()).importCatalog(body)),
  importOci: defineRoute(ROUTES.importOci, ({ body }) => oci.importOci(body)),
  catalogSearch: defineRoute(ROUTES.catalogSearch, ({ query }) =>
    (catalog ?? catalogIsOff()).search(query.q, query.names === undefined ? undefined : 'normalized')
  ),
  search: defineRoute(ROUTES.search, async ({ query }): Promise<SearchResult> => {
    if (query.source !== 'catalog') return (hub ?? noHub()).search(query)
    const { entries } = await (catalog ?? catalogIsOff()).search(query.q, 'normalized')
    return { entries: [], catalog: entries }
  }),
  companions: defineRoute(ROUTES.companions, async ({ body }) => {
    const resolved = await resolver.resolve(body.ref)
    const [manifestDigest] = digestsOf(resolved)
    const manifest = await documents.requireManifest(manifestDigest)
    const { ref, ns, name } = resolved
    return (hub ?? noHub()).companions({ ref, repo: { ns, name }, manifestDigest, manifest })
  })
})
