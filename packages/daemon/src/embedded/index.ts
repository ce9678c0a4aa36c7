export {
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails
} from '../library/library-error.ts'
export type { Log } from '../library/log.ts'
export type { Collected, CollectOptions } from '../operations/collect.ts'
export type { FileInProgress } from '../operations/work.ts'
export { localFiles } from './local-files.ts'
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
  StoredFile,
  VerifyFindings,
  WorkOptions
} from './models.ts'
export { type LibraryOptions, openLibrary } from './open-library.ts'
export { type ConnectOptions, openOrConnect } from './open-or-connect.ts'
export { readLibrary } from './read-library.ts'
