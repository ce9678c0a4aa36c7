import { ROUTES } from '@svc/client/protocol'
import { type InventoryDeps, inventoryText } from '../../library/models.ts'
import { defineByteRoute, sendJsonText } from '../route.ts'

export const modelsRoute = (deps: InventoryDeps) =>
  defineByteRoute(ROUTES.models, async () => {
    const pieces = await inventoryText(deps)
    return async ({ response }) => sendJsonText(response, ROUTES.models.status, pieces)
  })
