// What the daemon is made of, at the same version: no promise to anybody else.

export { Catalog, type CatalogDeps, type CatalogOptions } from './catalog.ts'
