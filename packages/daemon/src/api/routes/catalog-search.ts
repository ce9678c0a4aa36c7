import { type CatalogSearch, ROUTES } from '@svc/client/protocol'
import { catalogIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** Searches the community catalog. */
export interface CatalogListings {
  search(terms: string, names?: 'normalized'): Promise<CatalogSearch>
}

export const catalogSearchRoute = ({ catalog }: { readonly catalog: CatalogListings | undefined }) =>
  defineRoute(ROUTES.catalogSearch, ({ query }) =>
    (catalog ?? catalogIsOff()).search(query.q, query.names === undefined ? undefined : 'normalized')
  )
