export { type CatalogModelOptions, catalogModel } from './catalog-model.ts'
