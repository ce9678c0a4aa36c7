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
import { jobRoute } from './routes/job.ts'
import { jobsRoute } from './routes/jobs.ts'
import { modelsRoute } from './routes/models.ts'
import { openRoute } from './routes/open.ts'
import { privateRoute } from './routes/private.ts'
import { removeModelRoute, removeQuantRoute } from './routes/remove-model.ts'
import { resolveRoute } from './routes/resolve.ts'
import { seedLocalRoute } from './routes/seed-local.ts'
import { shareRoutes } from './routes/share.ts'
import { statusRoute } from './routes/status.ts'
import { unpinRoute } from './routes/unpin.ts'
import { verifyRoute } from './routes/verify.ts'
import { viewRoutes } from './routes/views.ts'

/** Everything that some route asks. Each route's file says what it needs itself. */
export type ApiParts = Parameters<typeof blobRoutes>[0] &
  Parameters<typeof catalogSearchRoute>[0] &
  Parameters<typeof ensureRoute>[0] &
  Parameters<typeof importBtRoute>[0] &
  Parameters<typeof importCatalogRoute>[0] &
  Parameters<typeof importHfRoute>[0] &
  Parameters<typeof importHfPlanRoute>[0] &
  Parameters<typeof importLocalRoute>[0] &
  Parameters<typeof modelsRoute>[0] &
  Parameters<typeof removeModelRoute>[0] &
  Parameters<typeof gcRoute>[0] &
  Parameters<typeof privateRoute>[0] &
  Parameters<typeof seedLocalRoute>[0] &
  Parameters<typeof shareRoutes>[0] &
  Parameters<typeof statusRoute>[0] &
  Parameters<typeof verifyRoute>[0] &
  Parameters<typeof viewRoutes>[0]

/**
 * The list of routes. To add one: an entry in `PATHS` and `ROUTES` of `@svc/client/protocol`, a file in `routes/`, a line here. A
 * route of the contract that has no line does not compile.
 */
export const apiRoutes = (parts: ApiParts): Readonly<Record<RouteId, ApiRoute>> => ({
  ...blobRoutes(parts),
  ...viewRoutes(parts),
  ...shareRoutes(parts),
  resolve: resolveRoute(parts),
  open: openRoute(parts),
  ensure: ensureRoute(parts),
  job: jobRoute(parts),
  jobs: jobsRoute(parts),
  cancelJob: cancelJobRoute(parts),
  importLocal: importLocalRoute(parts),
  adopt: adoptRoute(parts),
  importHf: importHfRoute(parts),
  importHfPlan: importHfPlanRoute(parts),
  importBt: importBtRoute(parts),
  importCatalog: importCatalogRoute(parts),
  catalogSearch: catalogSearchRoute(parts),
  verify: verifyRoute(parts),
  models: modelsRoute(parts),
  removeModel: removeModelRoute(parts),
  removeQuant: removeQuantRoute(parts),
  unpin: unpinRoute(parts),
  gc: gcRoute(parts),
  setPrivate: privateRoute(parts),
  seedLocal: seedLocalRoute(parts),
  status: statusRoute(parts)
})
