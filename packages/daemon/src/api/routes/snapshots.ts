import { ROUTES } from '@svc/client/protocol'
import type { Snapshots } from '@svc/library/parts'
import { defineRoute, takeTime } from '../route.ts'

export const snapshotRoutes = ({ snapshots }: { readonly snapshots: Snapshots }) => ({
  makeSnapshot: defineRoute(ROUTES.makeSnapshot, (_call, exchange) => {
    takeTime(exchange)
    return snapshots.make()
  }),
  holdSnapshot: defineRoute(ROUTES.holdSnapshot, ({ params }) => snapshots.hold(params.id)),
  releaseSnapshot: defineRoute(ROUTES.releaseSnapshot, ({ params }) => snapshots.release(params.id))
})
