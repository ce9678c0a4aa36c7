export { LeaseFile, ReaderLeases } from './lease-files.ts'
export {
  blobsOf,
  type FileInProgress,
  type ImportedModels,
  type LocatedModel,
  type ModelEntry,
  type Models,
  type OperationProgress,
  type ReadableModels,
  type ResolvedModel,
  type StoredCompanion,
  type StoredFile,
  type VerifyFindings,
  type WorkOptions
} from './models.ts'
export type {
  CatalogChoice,
  CatalogModel,
  HubRepository,
  ImageLayout,
  ImportChoice,
  LocalChoice,
  LocalFiles,
  ModelSource,
  OciChoice,
  RegistryImage
} from './sources.ts'
