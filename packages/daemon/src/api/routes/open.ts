import { ROUTES } from '@svc/client/protocol'
import { digestsOf, type OpenParts, openRef } from '../../library/open.ts'
import type { Usage } from '../../library/usage.ts'
import { defineRoute } from '../route.ts'

export const openRoute = ({ usage, ...parts }: OpenParts & { readonly usage: Usage }) =>
  defineRoute(ROUTES.open, async ({ query }) => {
    const result = await openRef(query.ref, parts)
    usage.note(digestsOf(result)[0])
    return result
  })
