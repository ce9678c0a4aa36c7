import type { DiskBlobStore } from '@svc/cas'
import { ROUTES } from '@svc/client/protocol'
import type { Resolver } from '../../library/resolve.ts'
import { defineRoute } from '../route.ts'

export interface ResolveDeps {
  readonly resolver: Resolver
  readonly store: Pick<DiskBlobStore, 'check'>
}

export const resolveRoute = ({ resolver, store }: ResolveDeps) =>
  defineRoute(ROUTES.resolve, async ({ query }) => {
    try {
      return await resolver.resolve(query.ref)
    } catch (error) {
      // nothing is unknown in a store that has lost a folder
      store.check()
      throw error
    }
  })
