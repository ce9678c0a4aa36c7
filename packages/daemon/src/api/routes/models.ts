import { ROUTES } from '@svc/client/protocol'
import { type InventoryParts, inventory } from '../../library/models.ts'
import { defineRoute } from '../route.ts'

export const modelsRoute = (parts: InventoryParts) => defineRoute(ROUTES.models, () => inventory(parts))
