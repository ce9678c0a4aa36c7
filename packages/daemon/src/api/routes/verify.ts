import { ROUTES } from '@svc/client/protocol'
import { type VerifyDeps, verify } from '../../jobs/verify.ts'
import { defineRoute } from '../route.ts'

export const verifyRoute = (deps: VerifyDeps) => defineRoute(ROUTES.verify, ({ body }) => verify(body.target, deps))
