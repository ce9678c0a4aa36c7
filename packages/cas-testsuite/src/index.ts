export type { BlobStore, HashAttachment } from '@svc/cas'
export type { Sha256Digest } from '@svc/ref'
export { describeBlobStore } from './blob-store.ts'
export {
  blockAttachment,
  blockHashes,
  type ContractApi,
  type ContractMatchers,
  codeOf,
  collect,
  digestOf,
  inChunks,
  seededBytes
} from './material.ts'
export { createMemoryStore } from './memory-store.ts'
export { type ContractSubject, describeBlobReads } from './reads.ts'
