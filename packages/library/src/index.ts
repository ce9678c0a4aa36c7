export {
  type Advice,
  type AdvicePlain,
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails,
  type Log
} from '@svc/internal-state'
export { localFiles } from './embedded/local-files.ts'
export type {
  ImportedModels,
  LocalFiles,
  LocatedModel,
  ModelEntry,
  Models,
  OperationProgress,
  OwnedModels,
  ReadableModels,
  ResolvedModel,
  StoredCompanion,
  StoredFile,
  VerifyFindings,
  WorkOptions
} from './embedded/models.ts'
export { type LibraryOptions, openLibrary } from './embedded/open-library.ts'
export { type ConnectOptions, openOrConnect } from './embedded/open-or-connect.ts'
export { readLibrary } from './embedded/read-library.ts'
export type { ModelSource } from './import/model-source.ts'
export type { ImportChoice } from './import/selection.ts'
export type { Collected, CollectOptions } from './operations/collect.ts'
export type { FileInProgress } from './operations/work.ts'
