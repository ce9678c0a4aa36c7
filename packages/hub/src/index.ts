export type { ByteRanges } from '@svc/internal-byte-ranges'
export type { RangeSink, RetryWait } from '@svc/internal-http'
export type { Sha256Digest } from '@svc/ref'
export {
  HUB_DOCUMENT_ERRORS,
  HUB_DOCUMENTS,
  type HubAccount,
  type HubDocuments,
  type HubHit,
  type HubInfo,
  type ReadHubDocument
} from './documents.ts'
export type { DownloadOptions } from './download.ts'
export { isRepoId, isRevision } from './endpoint.ts'
export { HubError, type HubErrorCode, type HubErrorDetails, type HubErrorReason } from './errors.ts'
export { gitBlobSha1, gitBlobSha1HasherUrl } from './git-blob-sha1.ts'
export { createHub, type Hub, type HubOptions } from './hub.ts'
export type { HubLimits, RetryTimings } from './limits.ts'
export type { HubListing, ListingOptions } from './listing.ts'
export type { ProbeOptions } from './probe.ts'
export type { HubHits, HubQuery } from './search.ts'
export { createMemorySink, type DirectSink, type HubSink, type MemorySink } from './sink.ts'
export type { HubFile } from './tree.ts'
export type { DeltaOutcome, OlderVersion } from './xet/delta.ts'
