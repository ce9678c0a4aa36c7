import { ROUTES } from '@svc/client/protocol'
import { type OpenParts, openRef } from '../../library/open.ts'
import { defineRoute } from '../route.ts'

export const openRoute = (parts: OpenParts) => defineRoute(ROUTES.open, ({ query }) => openRef(query.ref, parts))
