import { ROUTES } from '@svc/client/protocol'
import { type InventoryDeps, inventory } from '../../library/models.ts'
import { defineRoute } from '../route.ts'

export const modelsRoute = (deps: InventoryDeps) => defineRoute(ROUTES.models, () => inventory(deps))
