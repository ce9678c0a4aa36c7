import { type ImportCatalogBody, type Job, ROUTES } from '@svc/client/protocol'
import { catalogIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Anchored pulls of what the community catalog lists. */
export interface CatalogImports {
  importCatalog(body: ImportCatalogBody): Promise<Job>
}

export const importCatalogRoute = ({ catalog }: { readonly catalog: CatalogImports | undefined }) =>
  defineRoute(ROUTES.importCatalog, ({ body }) => (catalog ?? catalogIsOff()).importCatalog(body))
