import { type ImportBtBody, type Job, ROUTES } from '@svc/client/protocol'
import { swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Pinned imports from a BitTorrent v2 swarm. */
export interface BtImports {
  importBt(body: ImportBtBody): Promise<Job>
}

export const importBtRoute = ({ swarm }: { readonly swarm: BtImports | undefined }) =>
  defineRoute(ROUTES.importBt, ({ body }) => (swarm ?? swarmIsOff()).importBt(body))
