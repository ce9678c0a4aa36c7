import { ROUTES } from '@svc/client/protocol'
import type { JobRegistry } from '../../jobs/registry.ts'
import { defineRoute } from '../route.ts'

export const jobsRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.jobs, () => ({ jobs: jobs.list() }))
