import { ROUTES } from '@svc/client/protocol'
import { type CollectParts, collect } from '../../jobs/collect.ts'
import { defineRoute } from '../route.ts'

export const gcRoute = (parts: CollectParts) => defineRoute(ROUTES.gc, ({ body }) => collect(body, parts))
