import { ROUTES } from '@svc/client/protocol'
import { tryParseDigest } from '@svc/ref'
import { type CollectDeps, collect } from '../../jobs/collect.ts'
import { type EnsureDeps, ensure } from '../../jobs/ensure.ts'
import type { Evictions } from '../../jobs/evict.ts'
import { type VerifyDeps, verify } from '../../jobs/verify.ts'
import type { Usage } from '../../library/usage.ts'
import { defineRoute } from '../route.ts'

export type JobRoutesDeps = EnsureDeps &
  VerifyDeps &
  CollectDeps & {
    readonly evictions: Pick<Evictions, 'start'>
    readonly usage: Usage
  }

export const jobRoutes = (deps: JobRoutesDeps) => ({
  /** An invalid reference gives a failed job, not an error response (spec job.3). */
  ensure: defineRoute(ROUTES.ensure, async ({ body }) => {
    const job = await ensure(body.ref, deps, { mayEvict: body.evict ?? false })
    const manifestDigest = job.manifest === undefined ? undefined : tryParseDigest(job.manifest)
    if (manifestDigest !== undefined) deps.usage.note(manifestDigest)
    return job
  }),
  job: defineRoute(ROUTES.job, ({ params }) => deps.jobs.require(params.id)),
  jobs: defineRoute(ROUTES.jobs, () => ({ jobs: deps.jobs.list() })),
  /** Responds when the job has ended and released its files (spec add.15). */
  cancelJob: defineRoute(ROUTES.cancelJob, ({ params }) => deps.jobs.cancel(params.id)),
  verify: defineRoute(ROUTES.verify, ({ body }) => verify(body.target, deps)),
  gc: defineRoute(ROUTES.gc, ({ body }) => collect(body, deps)),
  evict: defineRoute(ROUTES.evict, ({ body }) => deps.evictions.start(body))
})
