import { type ImportCatalogBody, type Job, ROUTES } from '@svc/client/protocol'
import { catalogIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Imports of models listed in the community catalog, verified against an anchor. */
export interface CatalogImports {
  importCatalog(body: ImportCatalogBody): Promise<Job>
}

export const importCatalogRoute = ({ catalog }: { readonly catalog: CatalogImports | undefined }) =>
  defineRoute(ROUTES.importCatalog, ({ body }) => (catalog ?? catalogIsOff()).importCatalog(body))
