import type { RouteId } from '@svc/client/protocol'
import type { ApiRoute } from './route.ts'
import { blobRoutes } from './routes/blobs.ts'
import { importRoutes } from './routes/imports.ts'
import { jobRoutes } from './routes/jobs.ts'
import { modelRoutes } from './routes/models.ts'
import { sharingRoutes } from './routes/sharing.ts'
import { snapshotRoutes } from './routes/snapshots.ts'
import { statusRoute } from './routes/status.ts'
import { tagRoutes } from './routes/tags.ts'
import { viewRoutes } from './routes/views.ts'

/** The dependencies of all routes together. Each resource's file declares its own. */
export type ApiDeps = Parameters<typeof blobRoutes>[0] &
  Parameters<typeof importRoutes>[0] &
  Parameters<typeof jobRoutes>[0] &
  Parameters<typeof modelRoutes>[0] &
  Parameters<typeof sharingRoutes>[0] &
  Parameters<typeof snapshotRoutes>[0] &
  Parameters<typeof statusRoute>[0] &
  Parameters<typeof tagRoutes>[0] &
  Parameters<typeof viewRoutes>[0]

/**
 * The routes. To add one: an entry in `PATHS` and `ROUTES` of `@svc/client/protocol`, and a handler in `routes/`. A
 * route of the contract without a handler does not compile.
 */
export const apiRoutes = (deps: ApiDeps): Readonly<Record<RouteId, ApiRoute>> => ({
  ...blobRoutes(deps),
  ...importRoutes(deps),
  ...jobRoutes(deps),
  ...modelRoutes(deps),
  ...sharingRoutes(deps),
  ...snapshotRoutes(deps),
  status: statusRoute(deps),
  ...tagRoutes(deps),
  ...viewRoutes(deps)
})
