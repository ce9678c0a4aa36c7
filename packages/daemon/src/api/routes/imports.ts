import { ROUTES, type SearchResult } from '@svc/client/protocol'
import type { Library } from '@svc/library/parts'
import type { Catalog } from '../../sources/catalog/catalog.ts'
import type { HubImports } from '../../sources/hub/hub-imports.ts'
import type { LocalImports } from '../../sources/local/local-imports.ts'
import type { OciImports } from '../../sources/oci/oci-imports.ts'
import type { SwarmClient } from '../../swarm/swarm-client.ts'
import { catalogIsOff, noHub, swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** The import sources; a disabled one is undefined. */
export interface ImportRoutesDeps extends Pick<Library, 'resolver'> {
  readonly local: LocalImports
  readonly hub: HubImports | undefined
  readonly swarm: Pick<SwarmClient, 'importBt'> | undefined
  readonly catalog: Catalog | undefined
  readonly oci: OciImports
}

export const importRoutes = ({ resolver, local, hub, swarm, catalog, oci }: ImportRoutesDeps) => ({
  importLocal: defineRoute(ROUTES.importLocal, ({ body }) => local.importLocal(body)),
  adopt: defineRoute(ROUTES.adopt, ({ body }) => local.adopt(body)),
  adoptPlan: defineRoute(ROUTES.adoptPlan, ({ body }) => local.planAdopt(body)),
  importHf: defineRoute(ROUTES.importHf, ({ body }) => (hub ?? noHub()).importHf(body)),
  hubAccount: defineRoute(ROUTES.hubAccount, ({ body }) => (hub ?? noHub()).account(body)),
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
    const { ref, ns, name, manifestDigest, manifest } = await resolver.resolveHere(body.ref)
    return (hub ?? noHub()).companions({ ref, repo: { ns, name }, manifestDigest, manifest })
  })
})
