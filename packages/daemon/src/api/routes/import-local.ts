import { type AdoptBody, type ImportLocalBody, type Job, ROUTES } from '@svc/client/protocol'
import { defineRoute } from '../route.ts'

/** Imports from the disks of this machine. */
export interface LocalImports {
  importLocal(body: ImportLocalBody): Promise<Job>
  adopt(body: AdoptBody): Promise<Job>
}

export const importLocalRoute = ({ local }: { readonly local: LocalImports }) =>
  defineRoute(ROUTES.importLocal, ({ body }) => local.importLocal(body))

export const adoptRoute = ({ local }: { readonly local: LocalImports }) =>
  defineRoute(ROUTES.adopt, ({ body }) => local.adopt(body))
