import { ROUTES } from '@svc/client/protocol'
import { type CollectDeps, collect } from '../../jobs/collect.ts'
import { defineRoute } from '../route.ts'

export const gcRoute = (deps: CollectDeps) => defineRoute(ROUTES.gc, ({ body }) => collect(body, deps))
