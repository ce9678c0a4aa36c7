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
export type { BlobHead, BlobRead, BlobSlice } from './blob-read.ts'
export {
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type ModelName,
  type TagName
} from './client.ts'
export { ClientError, type ClientErrorCode, type ClientErrorDetails, type ClientOnlyCode } from './errors.ts'
export { modelsOf } from './models.ts'
export type {
  AdoptBody,
  CompanionsBody,
  DownloadLimitBody,
  EnsureBody,
  EvictBody,
  GcBody,
  HubAccountBody,
  ImportBtBody,
  ImportCatalogBody,
  ImportHfBody,
  ImportLocalBody,
  ImportOciBody,
  OutdatedBody,
  PinBody,
  PrivateBody,
  SeedBody,
  SeedLocalBody,
  UploadLimitBody,
  VerifyBody
} from './protocol/bodies.ts'
export type { ErrorCode } from './protocol/error-codes.ts'
export type { DamagedRecord, Inventory, ModelMember, TagEntry } from './protocol/inventory.ts'
export type { Job, JobKind, JobState } from './protocol/job.ts'
export { isTerminal } from './protocol/job-state.ts'
export type { NameBody, NamedModel } from './protocol/naming.ts'
export type { OutdatedModel, OutdatedResult } from './protocol/outdated.ts'
export type { AdoptPlan, CatalogEntry, CatalogSearch, ImportPlan } from './protocol/plan.ts'
export type { PinResult, PrivateResult, RemovedModel } from './protocol/removal.ts'
export type {
  CompanionFile,
  OmittedFile,
  OpenCompanions,
  OpenFile,
  OpenResult,
  ResolveResult
} from './protocol/resolve.ts'
export type { HubAccountResult, HubEntry, SearchQuery, SearchResult } from './protocol/search.ts'
export type { Snapshot } from './protocol/snapshot.ts'
export { defaultSocketPath, type SocketEnv } from './protocol/socket-path.ts'
export type {
  ConnectedPeer,
  DownloadLimitResult,
  PeerList,
  SeedLocalResult,
  SeedResult,
  ShareResult,
  Status,
  SwarmStatus,
  TorrentStatus,
  UploadLimitResult
} from './protocol/status.ts'
export type { TagBody, TagList } from './protocol/tag.ts'
export type {
  RemovedView,
  RemoveStandingViewBody,
  RemoveViewBody,
  StandingView,
  StandingViewBody,
  View,
  ViewBody,
  ViewEntry
} from './protocol/view.ts'
export type { WhyResult } from './protocol/why.ts'
export type { WatchOptions } from './watch.ts'
