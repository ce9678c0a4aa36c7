import {
  type EnsureBody,
  type ImportBtBody,
  type ImportCatalogBody,
  type ImportHfBody,
  type ImportLocalBody,
  type ImportOciBody,
  type Job,
  ROUTES,
  type SearchResult
} from '@svc/client/protocol'
import type { Library } from '@svc/library/parts'
import { tryParseDigest } from '@svc/ref'
import type { DeepReadonly } from '../../deep-readonly.ts'
import type { AskedImports } from '../../jobs/asked-imports.ts'
import type { CatalogJobs } from '../../jobs/catalog-jobs.ts'
import { type EnsureJobDeps, startEnsure } from '../../jobs/ensure-job.ts'
import type { HubJobs } from '../../jobs/hub-jobs.ts'
import type { LocalImports } from '../../jobs/local-imports.ts'
import type { OciImports } from '../../jobs/oci-imports.ts'
import type { SwarmJobs } from '../../jobs/swarm-jobs.ts'
import { readJsonBody } from '../body.ts'
import { hubQueryOf } from '../hub-query.ts'
import { catalogIsOff, noHub, swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** The import sources; a disabled one is undefined. */
export interface ImportRoutesDeps extends Pick<Library, 'resolver' | 'usage'>, EnsureJobDeps {
  readonly asked: AskedImports
  readonly local: LocalImports
  readonly hub: HubJobs | undefined
  readonly swarmJobs: SwarmJobs | undefined
  readonly catalog: CatalogJobs | undefined
  readonly oci: OciImports
}

export function importRoutes(deps: ImportRoutesDeps) {
  const { asked, resolver, local, hub, swarmJobs, catalog, oci } = deps
  const starters = {
    ensure: (body: EnsureBody) => ensure(body, deps),
    importLocal: (body: ImportLocalBody) => local.importLocal(body),
    importHf: (body: ImportHfBody) => (hub ?? noHub()).importHf(body),
    importBt: (body: ImportBtBody) => (swarmJobs ?? swarmIsOff()).importBt(body),
    importCatalog: (body: ImportCatalogBody) => (catalog ?? catalogIsOff()).importCatalog(body),
    importOci: (body: ImportOciBody) => oci.importOci(body)
  }
  return {
    /** An invalid reference gives a failed job, not an error response (spec job.3). */
    ensure: defineRoute(ROUTES.ensure, ({ body }) => asked.start('ensure', body, starters.ensure)),
    importLocal: defineRoute(ROUTES.importLocal, ({ body }) => asked.start('importLocal', body, starters.importLocal)),
    importHf: defineRoute(ROUTES.importHf, ({ body }) => asked.start('importHf', body, starters.importHf)),
    importBt: defineRoute(ROUTES.importBt, ({ body }) => asked.start('importBt', body, starters.importBt)),
    importCatalog: defineRoute(ROUTES.importCatalog, ({ body }) =>
      asked.start('importCatalog', body, starters.importCatalog)
    ),
    importOci: defineRoute(ROUTES.importOci, ({ body }) => asked.start('importOci', body, starters.importOci)),
    resumeJob: defineRoute(ROUTES.resumeJob, ({ params }) =>
      asked.resume(params.id, async (route, body) => {
        // another version may have recorded it
        const checked = await readJsonBody(ROUTES[route].body, Buffer.from(JSON.stringify(body)))
        return starters[route](checked.body as never)
      })
    ),
    adopt: defineRoute(ROUTES.adopt, ({ body }) => local.adopt(body)),
    adoptPlan: defineRoute(ROUTES.adoptPlan, ({ body }) => local.planAdopt(body)),
    hubAccount: defineRoute(ROUTES.hubAccount, ({ body }) => (hub ?? noHub()).account(body)),
    importHfPlan: defineRoute(ROUTES.importHfPlan, ({ body }) => (hub ?? noHub()).plan(body)),
    inspectHf: defineRoute(ROUTES.inspectHf, ({ body }) => (hub ?? noHub()).inspect(body)),
    outdated: defineRoute(ROUTES.outdated, ({ body }) => (hub ?? noHub()).outdated(body)),
    catalogSearch: defineRoute(ROUTES.catalogSearch, ({ query }) =>
      (catalog ?? catalogIsOff()).search(query.q, query.names === undefined ? undefined : 'normalized')
    ),
    search: defineRoute(ROUTES.search, async ({ query }): Promise<DeepReadonly<SearchResult>> => {
      if (query.source !== 'catalog') return (hub ?? noHub()).search(hubQueryOf(query))
      const { entries } = await (catalog ?? catalogIsOff()).search(query.q, 'normalized')
      return { entries: [], catalog: entries }
    }),
    companions: defineRoute(ROUTES.companions, async ({ body }) => {
      const { ref, ns, name, manifestDigest, manifest } = await resolver.resolveHere(body.ref)
      return (hub ?? noHub()).companions({ ref, repo: { ns, name }, manifestDigest, manifest })
    })
  }
}

async function ensure({ ref, evict = false }: EnsureBody, deps: ImportRoutesDeps): Promise<Job> {
  const job = await startEnsure(ref, deps, { mayEvict: evict })
  const manifestDigest = job.manifest === undefined ? undefined : tryParseDigest(job.manifest)
  if (manifestDigest !== undefined) deps.usage.note(manifestDigest)
  return job
}
