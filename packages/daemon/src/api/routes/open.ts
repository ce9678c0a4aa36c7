import { ROUTES } from '@svc/client/protocol'
import { digestsOf, type OpenDeps, openRef } from '../../library/open.ts'
import type { Usage } from '../../library/usage.ts'
import { defineRoute } from '../route.ts'

export const openRoute = ({ usage, ...deps }: OpenDeps & { readonly usage: Usage }) =>
  defineRoute(ROUTES.open, async ({ query }) => {
    const result = await openRef(query.ref, deps)
    usage.note(digestsOf(result)[0])
    return result
  })
