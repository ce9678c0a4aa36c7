export type { CatalogChoice, CatalogModel } from '@svc/library'
export { type CatalogModelOptions, catalogModel } from './catalog-model.ts'
