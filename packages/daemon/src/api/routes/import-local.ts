import { type ImportLocalBody, type Job, ROUTES } from '@svc/client/protocol'
import { defineRoute } from '../route.ts'

/** Imports from the disks of this machine. */
export interface LocalImports {
  importLocal(body: ImportLocalBody): Promise<Job>
}

export const importLocalRoute = ({ local }: { readonly local: LocalImports }) =>
  defineRoute(ROUTES.importLocal, ({ body }) => local.importLocal(body))
