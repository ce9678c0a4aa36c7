import { ROUTES } from '@svc/client/protocol'
import type { Resolver } from '../../library/resolve.ts'
import { defineRoute } from '../route.ts'

export const resolveRoute = ({ resolver }: { readonly resolver: Resolver }) =>
  defineRoute(ROUTES.resolve, ({ query }) => resolver.resolve(query.ref))
