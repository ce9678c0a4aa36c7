export type {
  CatalogChoice,
  CatalogModel,
  FileInProgress,
  HubRepository,
  ImageLayout,
  ImportChoice,
  ImportedModels,
  LocalChoice,
  LocalFiles,
  LocatedModel,
  ModelEntry,
  ModelSource,
  Models,
  OciChoice,
  OperationProgress,
  ReadableModels,
  RegistryImage,
  ResolvedModel,
  StoredCompanion,
  StoredFile,
  VerifyFindings,
  WorkOptions
} from '@svc/internal-models'
export {
  type Advice,
  type AdvicePlain,
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails,
  type Log,
  type TrustRuleSource
} from '@svc/internal-state'
export type { RefErrorCode } from '@svc/ref'
export { localFiles } from './embedded/local-files.ts'
export { type LibraryOptions, openLibrary } from './embedded/open-library.ts'
export { type ConnectOptions, openOrConnect } from './embedded/open-or-connect.ts'
export type { OwnedModels } from './embedded/owned-models.ts'
export { readLibrary } from './embedded/read-library.ts'
export type { Collected, CollectOptions } from './operations/collect.ts'
