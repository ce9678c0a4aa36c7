import { type ImportBtBody, type Job, ROUTES } from '@svc/client/protocol'
import { swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Imports from a BitTorrent v2 swarm, pinned to a digest. */
export interface BtImports {
  importBt(body: ImportBtBody): Promise<Job>
}

export const importBtRoute = ({ swarm }: { readonly swarm: BtImports | undefined }) =>
  defineRoute(ROUTES.importBt, ({ body }) => (swarm ?? swarmIsOff()).importBt(body))
