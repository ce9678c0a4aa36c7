import { type ImportHfBody, type Job, ROUTES } from '@svc/client/protocol'
import { noHub } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Imports from the model hub. */
export interface HubImports {
  importHf(body: ImportHfBody): Promise<Job>
}

export const importHfRoute = ({ hub }: { readonly hub: HubImports | undefined }) =>
  defineRoute(ROUTES.importHf, ({ body }) => (hub ?? noHub()).importHf(body))
