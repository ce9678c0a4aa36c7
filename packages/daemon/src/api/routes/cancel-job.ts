import { ROUTES } from '@svc/client/protocol'
import type { JobRegistry } from '../../jobs/registry.ts'
import { defineRoute } from '../route.ts'

/** Answers when the job is over and has let go of its files (spec add.15). */
export const cancelJobRoute = ({ jobs }: { readonly jobs: JobRegistry }) =>
  defineRoute(ROUTES.cancelJob, ({ params }) => jobs.cancel(params.id))
