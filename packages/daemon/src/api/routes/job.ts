import { ROUTES } from '@svc/client/protocol'
import type { JobRegistry } from '../../jobs/registry.ts'
import { defineRoute } from '../route.ts'

export const jobRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.job, ({ params }) => jobs.require(params.id))
