export type { CompanionFile, FolderFile, FolderSource, Manifest } from '@svc/manifest'
export { MARKER } from '@svc/manifest'
export type { Sha256Digest } from '@svc/ref'
export { findCaches, readCache, TOOLS, toolFolder } from './adopt/find-caches.ts'
export type {
  CacheRoot,
  FoundCache,
  FoundFile,
  FoundModel,
  FoundWarning,
  FoundWarningCode,
  Tool
} from './adopt/found.ts'
export { OLLAMA_HOST, type OllamaName, suggestedOllamaName, tryParseOllamaName } from './adopt/ollama-name.ts'
export { repositoriesBelow } from './adopt/read-folders.ts'
export { ToolFolders, toolOfCache } from './adopt/tool-folders.ts'
export { componentOf } from './component.ts'
export { createView, type MadeView, type ViewOptions, type ViewSource } from './create-view.ts'
export { recoverViews } from './draft.ts'
export { ViewError, type ViewErrorCode, type ViewErrorDetails } from './errors.ts'
export { isInLargeFileStorage } from './layout.ts'
export { type HashedFile, listModel } from './list-model.ts'
export type { ViewLayout } from './marker.ts'
export type { ViewMode } from './place.ts'
export { reflink, type TransferCost, transferCost } from './reflink.ts'
export { removeView } from './remove-view.ts'
export { type RuntimePath, runtimePath } from './runtime-path.ts'
export { COMFYUI_USES } from './standing/comfyui.ts'
export { isStandingInOrder } from './standing/in-order.ts'
export {
  STANDING_LAYOUTS,
  type StandingFile,
  type StandingLayout,
  type StandingModel
} from './standing/model.ts'
export {
  removeStanding,
  type StandingOptions,
  type StandingRequest,
  type StandingResult,
  syncStanding
} from './standing/sync.ts'
export { readTarMembers, type TarMemberReader } from './tar-members.ts'
export { readView, type View, type ViewFile } from './view.ts'
