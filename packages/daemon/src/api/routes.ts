import type { RouteId } from '@svc/client/protocol'
import type { ApiRoute } from './route.ts'
import { blobRoutes, unpinRoute } from './routes/blobs.ts'
import {
  adoptPlanRoute,
  adoptRoute,
  catalogSearchRoute,
  companionsRoute,
  importBtRoute,
  importCatalogRoute,
  importHfPlanRoute,
  importHfRoute,
  importLocalRoute,
  importOciRoute,
  outdatedRoute,
  searchRoute
} from './routes/imports.ts'
import { cancelJobRoute, ensureRoute, gcRoute, jobRoute, jobsRoute, verifyRoute } from './routes/jobs.ts'
import {
  modelsRoute,
  openRoute,
  privateRoute,
  removeModelRoute,
  removeQuantRoute,
  resolveRoute,
  whyRoute
} from './routes/models.ts'
import { seedRoutes, shareRoutes } from './routes/sharing.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { statusRoute } from './routes/status.ts'
import { viewRoutes } from './routes/views.ts'

/** The dependencies of all routes together. Each route's file declares its own. */
export type ApiDeps = Parameters<typeof blobRoutes>[0] &
  Parameters<typeof catalogSearchRoute>[0] &
  Parameters<typeof companionsRoute>[0] &
  Parameters<typeof ensureRoute>[0] &
  Parameters<typeof importBtRoute>[0] &
  Parameters<typeof importCatalogRoute>[0] &
  Parameters<typeof importHfRoute>[0] &
  Parameters<typeof importHfPlanRoute>[0] &
  Parameters<typeof importLocalRoute>[0] &
  Parameters<typeof importOciRoute>[0] &
  Parameters<typeof modelsRoute>[0] &
  Parameters<typeof outdatedRoute>[0] &
  Parameters<typeof searchRoute>[0] &
  Parameters<typeof removeModelRoute>[0] &
  Parameters<typeof gcRoute>[0] &
  Parameters<typeof privateRoute>[0] &
  Parameters<typeof seedRoutes>[0] &
  Parameters<typeof shareRoutes>[0] &
  Parameters<typeof snapshotRoutes>[0] &
  Parameters<typeof statusRoute>[0] &
  Parameters<typeof verifyRoute>[0] &
  Parameters<typeof viewRoutes>[0] &
  Parameters<typeof whyRoute>[0]

/**
 * The list of routes. To add one: an entry in `PATHS` and `ROUTES` of `@svc/client/protocol`, a handler in `routes/`, a
 * line here. A route of the contract without a line here does not compile.
 */
export const apiRoutes = (deps: ApiDeps): Readonly<Record<RouteId, ApiRoute>> => ({
  ...blobRoutes(deps),
  ...viewRoutes(deps),
  ...shareRoutes(deps),
  ...seedRoutes(deps),
  ...snapshotRoutes(deps),
  resolve: resolveRoute(deps),
  open: openRoute(deps),
  ensure: ensureRoute(deps),
  job: jobRoute(deps),
  jobs: jobsRoute(deps),
  cancelJob: cancelJobRoute(deps),
  importLocal: importLocalRoute(deps),
  adopt: adoptRoute(deps),
  adoptPlan: adoptPlanRoute(deps),
  importHf: importHfRoute(deps),
  importHfPlan: importHfPlanRoute(deps),
  importBt: importBtRoute(deps),
  importCatalog: importCatalogRoute(deps),
  importOci: importOciRoute(deps),
  companions: companionsRoute(deps),
  catalogSearch: catalogSearchRoute(deps),
  verify: verifyRoute(deps),
  models: modelsRoute(deps),
  removeModel: removeModelRoute(deps),
  removeQuant: removeQuantRoute(deps),
  unpin: unpinRoute(deps),
  gc: gcRoute(deps),
  outdated: outdatedRoute(deps),
  search: searchRoute(deps),
  setPrivate: privateRoute(deps),
  status: statusRoute(deps),
  why: whyRoute(deps)
})
