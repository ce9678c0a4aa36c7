import { ROUTES, type Snapshot } from '@svc/client/protocol'
import { type ApiRoute, defineRoute, takeTime } from '../route.ts'

/** The snapshots that are held. */
export interface HeldSnapshots {
  make(): Promise<Snapshot>
  hold(id: string): Snapshot
  release(id: string): Promise<Snapshot>
}

export const snapshotRoutes = ({
  snapshots
}: {
  readonly snapshots: HeldSnapshots
}): Readonly<Record<'makeSnapshot' | 'holdSnapshot' | 'releaseSnapshot', ApiRoute>> => ({
  makeSnapshot: defineRoute(ROUTES.makeSnapshot, (_call, exchange) => {
    takeTime(exchange)
    return snapshots.make()
  }),
  holdSnapshot: defineRoute(ROUTES.holdSnapshot, ({ params }) => snapshots.hold(params.id)),
  releaseSnapshot: defineRoute(ROUTES.releaseSnapshot, ({ params }) => snapshots.release(params.id))
})
