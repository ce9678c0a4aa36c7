import { ROUTES } from '@svc/client/protocol'
import type { JobRegistry } from '../../jobs/registry.ts'
import { defineRoute } from '../route.ts'

/** Responds when the job has ended and released its files (spec add.15). */
export const cancelJobRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.cancelJob, ({ params }) => jobs.cancel(params.id))
