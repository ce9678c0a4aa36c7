import { ROUTES } from '@svc/client/protocol'
import { tryParseDigest } from '@svc/ref'
import { type CollectDeps, collect } from '../../jobs/collect.ts'
import { type EnsureDeps, ensure } from '../../jobs/ensure.ts'
import type { Filler } from '../../jobs/fill.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { type VerifyDeps, verify } from '../../jobs/verify.ts'
import type { Usage } from '../../library/usage.ts'
import { defineRoute } from '../route.ts'

export interface EnsureRouteDeps extends Omit<EnsureDeps, 'filler'> {
  /** Absent if the swarm client is off. */
  readonly swarm: { readonly filler: Filler } | undefined
  readonly usage: Usage
}

/** An invalid reference gives a failed job, not an error response (spec job.3). */
export const ensureRoute = ({ swarm, usage, ...deps }: EnsureRouteDeps) =>
  defineRoute(ROUTES.ensure, async ({ body }) => {
    const job = await ensure(body.ref, { ...deps, filler: swarm?.filler })
    const manifestDigest = job.manifest === undefined ? undefined : tryParseDigest(job.manifest)
    if (manifestDigest !== undefined) usage.note(manifestDigest)
    return job
  })

export const jobRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.job, ({ params }) => jobs.require(params.id))

export const jobsRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.jobs, () => ({ jobs: jobs.list() }))

/** Responds when the job has ended and released its files (spec add.15). */
export const cancelJobRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.cancelJob, ({ params }) => jobs.cancel(params.id))

export const verifyRoute = (deps: VerifyDeps) => defineRoute(ROUTES.verify, ({ body }) => verify(body.target, deps))

export const gcRoute = (deps: CollectDeps) => defineRoute(ROUTES.gc, ({ body }) => collect(body, deps))
