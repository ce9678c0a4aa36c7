import { ROUTES } from '@svc/client/protocol'
import { type VerifyParts, verify } from '../../jobs/verify.ts'
import { defineRoute } from '../route.ts'

export const verifyRoute = (parts: VerifyParts) => defineRoute(ROUTES.verify, ({ body }) => verify(body.target, parts))
