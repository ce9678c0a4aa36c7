import type { RouteId } from '@svc/client/protocol'
import type { ApiRoute } from './route.ts'
import { blobRoutes } from './routes/blob.ts'
import { cancelJobRoute } from './routes/cancel-job.ts'
import { catalogSearchRoute } from './routes/catalog-search.ts'
import { ensureRoute } from './routes/ensure.ts'
import { gcRoute } from './routes/gc.ts'
import { importBtRoute } from './routes/import-bt.ts'
import { importCatalogRoute } from './routes/import-catalog.ts'
import { importHfRoute } from './routes/import-hf.ts'
import { importHfPlanRoute } from './routes/import-hf-plan.ts'
import { adoptRoute, importLocalRoute } from './routes/import-local.ts'
import { importOciRoute } from './routes/import-oci.ts'
import { jobRoute } from './routes/job.ts'
import { jobsRoute } from './routes/jobs.ts'
import { modelsRoute } from './routes/models.ts'
import { openRoute } from './routes/open.ts'
import { privateRoute } from './routes/private.ts'
import { removeModelRoute, removeQuantRoute } from './routes/remove-model.ts'
import { resolveRoute } from './routes/resolve.ts'
import { seedLocalRoute } from './routes/seed-local.ts'
import { shareRoutes } from './routes/share.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { statusRoute } from './routes/status.ts'
import { unpinRoute } from './routes/unpin.ts'
import { verifyRoute } from './routes/verify.ts'
import { viewRoutes } from './routes/views.ts'
import { whyRoute } from './routes/why.ts'

/** The dependencies of all routes together. Each route's file declares its own. */
export type ApiDeps = Parameters<typeof blobRoutes>[0] &
  Parameters<typeof catalogSearchRoute>[0] &
  Parameters<typeof ensureRoute>[0] &
  Parameters<typeof importBtRoute>[0] &
  Parameters<typeof importCatalogRoute>[0] &
  Parameters<typeof importHfRoute>[0] &
  Parameters<typeof importHfPlanRoute>[0] &
  Parameters<typeof importLocalRoute>[0] &
  Parameters<typeof importOciRoute>[0] &
  Parameters<typeof modelsRoute>[0] &
  Parameters<typeof removeModelRoute>[0] &
  Parameters<typeof gcRoute>[0] &
  Parameters<typeof privateRoute>[0] &
  Parameters<typeof seedLocalRoute>[0] &
  Parameters<typeof shareRoutes>[0] &
  Parameters<typeof snapshotRoutes>[0] &
  Parameters<typeof statusRoute>[0] &
  Parameters<typeof verifyRoute>[0] &
  Parameters<typeof viewRoutes>[0] &
  Parameters<typeof whyRoute>[0]

/**
 * The list of routes. To add one: an entry in `PATHS` and `ROUTES` of `@svc/client/protocol`, a file in `routes/`, a
 * line here. A route of the contract without a line here does not compile.
 */
export const apiRoutes = (deps: ApiDeps): Readonly<Record<RouteId, ApiRoute>> => ({
  ...blobRoutes(deps),
  ...viewRoutes(deps),
  ...shareRoutes(deps),
  ...snapshotRoutes(deps),
  resolve: resolveRoute(deps),
  open: openRoute(deps),
  ensure: ensureRoute(deps),
  job: jobRoute(deps),
  jobs: jobsRoute(deps),
  cancelJob: cancelJobRoute(deps),
  importLocal: importLocalRoute(deps),
  adopt: adoptRoute(deps),
  importHf: importHfRoute(deps),
  importHfPlan: importHfPlanRoute(deps),
  importBt: importBtRoute(deps),
  importCatalog: importCatalogRoute(deps),
  importOci: importOciRoute(deps),
  catalogSearch: catalogSearchRoute(deps),
  verify: verifyRoute(deps),
  models: modelsRoute(deps),
  removeModel: removeModelRoute(deps),
  removeQuant: removeQuantRoute(deps),
  unpin: unpinRoute(deps),
  gc: gcRoute(deps),
  setPrivate: privateRoute(deps),
  seedLocal: seedLocalRoute(deps),
  status: statusRoute(deps),
  why: whyRoute(deps)
})
