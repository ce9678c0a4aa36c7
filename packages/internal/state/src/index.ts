export { type AbsentBlobs, absentBlobs } from './absent.ts'
export { Arrivals } from './arrivals.ts'
export { choiceUnder, companionsUnder, modifiedAt, type ProvenCopy } from './artifact-record.ts'
export { type ArtifactImport, type ArtifactState, Artifacts } from './artifacts.ts'
export { endAway, endAwayOfAll } from './away.ts'
export { isBeforeTag, tagBefore } from './before-tags.ts'
export { manifestIn } from './blob-index.ts'
export { ChangesElsewhere } from './changes-elsewhere.ts'
export { type ComingImport, type ComingModel, ComingModels, type StandIn } from './coming.ts'
export { type CompanionDeps, companionBlobs, filesOfCommit, partsLacking, someOf } from './companions.ts'
export { composeLibrary } from './compose-library.ts'
export { futureQuant, storedConfigQuant } from './config-quant.ts'
export { DocumentReader } from './document-reader.ts'
export { Documents } from './documents.ts'
export { type EvictionCandidate, isEvictable, type KeptFact, keptFact, planEviction } from './eviction.ts'
export { givenCompanions, markedOwn, ownCompanions } from './given-companions.ts'
export { checkedHints, isHttpUrl, isPeerAddress, isTrackerUrl, ownHints, policyOf } from './hints.ts'
export { Holdings, pinKey, sourceKey } from './holdings.ts'
export type { KeptPorts } from './kept-ports.ts'
export { type BlobTree, LEAVES, LeafLayers } from './leaf-layers.ts'
export { dropQuarantined, dropUnfinished, type Leftovers, quarantined, unfinished } from './leftovers.ts'
export { LentViews } from './lent-views.ts'
export type { Library } from './library.ts'
export {
  type Advice,
  type AdvicePlain,
  type Advise,
  LibraryError,
  type LibraryErrorCode,
  type LibraryErrorDetails,
  NO_ADVICE,
  noSpace,
  spokenBytes
} from './library-error.ts'
export type { Log } from './log.ts'
export { Members } from './members.ts'
export { type ListingDeps, listNamed } from './models.ts'
export { endMarker, readMoveMarker, writeMoveMarker } from './move-marker.ts'
export { giveName, type NamingDeps } from './naming.ts'
export { Needed } from './needed.ts'
export { NewerCommits } from './newer-commits.ts'
export { Offload, STRANGERS_HEAP_MIB } from './offload/pool.ts'
export type { HeaderRead, InspectedFile } from './offload/task.ts'
export { type OpenDeps, openRef, openResolved, presenceOf } from './open.ts'
export { OpenBlobs } from './open-blobs.ts'
export { type FilledPlace, type FoundStore, lookAtStore, openStore, type StorePlace } from './opening.ts'
export {
  type ArtifactSource,
  hubCommitOf,
  isCommit,
  NO_HINTS,
  type SourceKind,
  type SwarmHints,
  shownOrigin,
  upstreamName
} from './origin.ts'
export { outsideWarnings } from './outside-names.ts'
export {
  DOORS,
  type Door,
  heldBackReason,
  isPrivate,
  MAX_UNPROVEN,
  type Provenance,
  type SharingPolicy,
  toldWithheld,
  verdictOf,
  withheldNotice,
  withMark
} from './provenance.ts'
export { readAtOf } from './read-at.ts'
export { type RecordKind, StateRecords } from './record.ts'
export { Removals } from './removal.ts'
export { ReplacedFiles, STATE_FOLDERS } from './replace.ts'
export { type RepoState, Repos } from './repos.ts'
export { type Resolved, Resolver } from './resolve.ts'
export { RestoredRecords } from './restored-records.ts'
export { Revised } from './revised.ts'
export { SignedModels } from './signed-models.ts'
export { oneChunk, readSmallBlob, readWholeBlob } from './small-blob.ts'
export { Snapshots } from './snapshots.ts'
export type { StoreState } from './state.ts'
export { requireStore, StoreWatch, storeProblem } from './store-presence.ts'
export { anything, oneOf, optional, readable, text, UnreadableStateError } from './strict.ts'
export { changeTag, changeTagHere, listTags, type TagChange, tagEntry } from './tags.ts'
export {
  type BroughtModel,
  type InspectionRule,
  MAX_SIGNATURE_BYTES,
  SIGNATURE,
  type SignedListing,
  type TrustRule,
  type TrustRuleSource,
  TrustRules
} from './trust.ts'
export { Unneeded } from './unneeded.ts'
export { type StateParts, unreadableRecords } from './unreadable.ts'
export { upstreamConfigOf } from './upstream-config.ts'
export {
  type LeftOut,
  type LookOptions,
  UnimportableListingError,
  type UpstreamFile,
  type UpstreamRepo
} from './upstream-repo.ts'
export { Usage } from './usage.ts'
export { type ArtifactFolder, ViewMaker } from './view-maker.ts'
export { ViewRecords } from './view-records.ts'
export type { ListedView } from './view-request.ts'
export { Views } from './views.ts'
export { WantedBlobs } from './wanted-blobs.ts'
