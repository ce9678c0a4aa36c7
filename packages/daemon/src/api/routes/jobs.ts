import { ROUTES } from '@svc/client/protocol'
import type { Usage, VerifyDeps } from '@svc/library/parts'
import { tryParseDigest } from '@svc/ref'
import { type CollectJobDeps, startCollection } from '../../jobs/collect-job.ts'
import { type EnsureJobDeps, startEnsure } from '../../jobs/ensure-job.ts'
import { type EvictJobDeps, startEviction } from '../../jobs/evict-job.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { startVerify } from '../../jobs/verify-job.ts'
import { defineRoute } from '../route.ts'

export type JobRoutesDeps = EnsureJobDeps &
  VerifyDeps &
  CollectJobDeps &
  EvictJobDeps & {
    readonly jobs: JobRegistry
    readonly usage: Usage
  }

export const jobRoutes = (deps: JobRoutesDeps) => ({
  /** An invalid reference gives a failed job, not an error response (spec job.3). */
  ensure: defineRoute(ROUTES.ensure, async ({ body }) => {
    const job = await startEnsure(body.ref, deps, { mayEvict: body.evict ?? false })
    const manifestDigest = job.manifest === undefined ? undefined : tryParseDigest(job.manifest)
    if (manifestDigest !== undefined) deps.usage.note(manifestDigest)
    return job
  }),
  job: defineRoute(ROUTES.job, ({ params }) => deps.jobs.require(params.id)),
  jobs: defineRoute(ROUTES.jobs, () => ({ jobs: deps.jobs.list() })),
  /** Responds when the job has ended and released its files (spec add.15). */
  cancelJob: defineRoute(ROUTES.cancelJob, ({ params }) => deps.jobs.cancel(params.id)),
  verify: defineRoute(ROUTES.verify, ({ body }) => startVerify(body.target, deps)),
  gc: defineRoute(ROUTES.gc, ({ body }) => startCollection(body, deps)),
  evict: defineRoute(ROUTES.evict, ({ body }) => startEviction(body, deps))
})
