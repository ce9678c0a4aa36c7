import { type ImportHfBody, type ImportPlan, ROUTES } from '@svc/client/protocol'
import { noHub } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** What an import from the hub would do. */
export interface HubPlans {
  plan(body: ImportHfBody): Promise<ImportPlan>
}

export const importHfPlanRoute = ({ hub }: { readonly hub: HubPlans | undefined }) =>
  defineRoute(ROUTES.importHfPlan, ({ body }) => (hub ?? noHub()).plan(body))
