import { ROUTES } from '@svc/client/protocol'
import type { VerifyDeps } from '@svc/library/parts'
import type { AskedImports } from '../../jobs/asked-imports.ts'
import { type CollectJobDeps, startCollection } from '../../jobs/collect-job.ts'
import { type EvictJobDeps, startEviction } from '../../jobs/evict-job.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { startVerify } from '../../jobs/verify-job.ts'
import { defineRoute } from '../route.ts'

export type JobRoutesDeps = VerifyDeps &
  CollectJobDeps &
  EvictJobDeps & {
    readonly jobs: JobRegistry
    readonly asked: AskedImports
  }

export const jobRoutes = (deps: JobRoutesDeps) => ({
  job: defineRoute(ROUTES.job, ({ params }) => deps.jobs.require(params.id)),
  jobs: defineRoute(ROUTES.jobs, () => {
    const interrupted = deps.asked.interrupted()
    return { jobs: deps.jobs.list(), ...(interrupted.length > 0 && { interrupted }) }
  }),
  /** Responds when the job has ended and released its files (spec add.15). */
  cancelJob: defineRoute(
    ROUTES.cancelJob,
    async ({ params }) => (await deps.asked.forget(params.id)) ?? deps.jobs.cancel(params.id)
  ),
  verify: defineRoute(ROUTES.verify, ({ body }) => startVerify(body.target, deps)),
  gc: defineRoute(ROUTES.gc, ({ body }) => startCollection(body, deps)),
  evict: defineRoute(ROUTES.evict, ({ body }) => startEviction(body, deps))
})
