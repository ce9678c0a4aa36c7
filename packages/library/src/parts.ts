// What the packages of svc are made of, for each other at the same version: no promise to anybody else (README.md).

export {
  type AbsentBlobs,
  type Advice,
  type AdvicePlain,
  Arrivals,
  type ArtifactFolder,
  type ArtifactImport,
  type ArtifactState,
  Artifacts,
  absentBlobs,
  anything,
  type BlobTree,
  type ComingImport,
  ComingModels,
  changeTag,
  changeTagHere,
  checkedHints,
  choiceUnder,
  companionsUnder,
  composeLibrary,
  DOORS,
  DocumentReader,
  Documents,
  type Door,
  type FoundStore,
  futureQuant,
  giveName,
  givenCompanions,
  Holdings,
  heldBackReason,
  hubCommitOf,
  isCommit,
  isEvictable,
  isHttpUrl,
  isPeerAddress,
  isPrivate,
  isTrackerUrl,
  type KeptPorts,
  LEAVES,
  LeafLayers,
  type LeftOut,
  type Leftovers,
  type Library,
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails,
  type ListingDeps,
  type Log,
  type LookOptions,
  listNamed,
  listTags,
  lookAtStore,
  MAX_SIGNATURE_BYTES,
  modifiedAt,
  type NamingDeps,
  Needed,
  NO_HINTS,
  noSpace,
  Offload,
  OpenBlobs,
  type OpenDeps,
  oneChunk,
  oneOf,
  openRef,
  openStore,
  optional,
  ownCompanions,
  ownHints,
  type Provenance,
  pinKey,
  policyOf,
  quarantined,
  type RecordKind,
  Removals,
  ReplacedFiles,
  Repos,
  Revised,
  readAtOf,
  readSmallBlob,
  readWholeBlob,
  requireStore,
  type SharingPolicy,
  SIGNATURE,
  type SignedListing,
  SignedModels,
  Snapshots,
  STRANGERS_HEAP_MIB,
  type StandIn,
  type StateParts,
  StateRecords,
  type StorePlace,
  StoreWatch,
  type SwarmHints,
  shownOrigin,
  someOf,
  sourceKey,
  spokenBytes,
  storedConfigQuant,
  storeProblem,
  type TagChange,
  type TrustRule,
  TrustRules,
  tagEntry,
  text,
  toldWithheld,
  UnimportableListingError,
  UnreadableStateError,
  type UpstreamFile,
  type UpstreamRepo,
  Usage,
  unfinished,
  unreadableRecords,
  upstreamName,
  Views,
  verdictOf,
  WantedBlobs,
  withheldNotice,
  withMark
} from '@svc/internal-state'
export type { CopyProgress } from './copying/copy-blobs.ts'
export { type MoveResult, moveStore } from './copying/move-store.ts'
export { checkPlaces } from './copying/places.ts'
export { type RestoreOptions, restoreStore } from './copying/restore-store.ts'
export { type OpenedParts, partsOf } from './embedded/open-library.ts'
export { type ServedParts, servedPartsOf } from './embedded/served-parts.ts'
export { planSelected, selectedQuants } from './import/choice.ts'
export { type CommitContext, commitArtifacts } from './import/commit.ts'
export { companionWarnings, leftOut } from './import/companions.ts'
export { configFacts } from './import/config-facts.ts'
export type { Imported } from './import/imported.ts'
export { type CompanionsRequest, Importer, type ImportRequest } from './import/importer.ts'
export { type ListableSource, namesOfSet } from './import/model-source.ts'
export type { PlannedImport } from './import/plan.ts'
export { Proof } from './import/proof.ts'
export { writeDocument, writeRecord } from './import/seal.ts'
export {
  type ImportSelection,
  importSelectionOf,
  type MayReplace,
  mayReplaceOf,
  opaqueOf,
  type SourceSelection
} from './import/selection.ts'
export type {
  ClaimedFile,
  ClaimedOrigin,
  ConfirmPublic,
  FetchContext,
  FetchTarget,
  FileHere,
  ImportSource,
  PublicAnswer,
  RemoteFile,
  Reuse
} from './import/source.ts'
export { importTarget, targetFor } from './import/target.ts'
export { adoptedSource } from './local/adopted.ts'
export { toolsHere } from './local/downloads.ts'
export { localSource } from './local/source.ts'
export { checkPath } from './local/walk.ts'
export { type CollectDeps, collect } from './operations/collect.ts'
export { Copies, type CopyAnswer, type CopyWitness } from './operations/copies.ts'
export { type EnsureDeps, planEnsure } from './operations/ensure.ts'
export { Evictions } from './operations/evict.ts'
export type { Beside, FillContext, Filler, FillRequest } from './operations/fill.ts'
export { type MakeRoom, Room, type RoomDeps } from './operations/room.ts'
export { type SourceFiller, SourcesFiller } from './operations/sources-filler.ts'
export { type Findings, type VerifyDeps, verify, verifyTarget } from './operations/verify.ts'
export type { RunningWork, Work, WorkProgress } from './operations/work.ts'
export type { OllamaModel, StandingFolder } from './standing/standing-deps.ts'
export { StandingViews } from './standing/standing-views.ts'
