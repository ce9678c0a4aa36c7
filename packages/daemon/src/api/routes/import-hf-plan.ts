import { type ImportHfBody, type ImportPlan, ROUTES } from '@svc/client/protocol'
import { noHub } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Plans of imports from the hub. */
export interface HubPlans {
  plan(body: ImportHfBody): Promise<ImportPlan>
}

export const importHfPlanRoute = ({ hub }: { readonly hub: HubPlans | undefined }) =>
  defineRoute(ROUTES.importHfPlan, ({ body }) => (hub ?? noHub()).plan(body))
