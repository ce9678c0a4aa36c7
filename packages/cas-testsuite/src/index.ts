export { describeBlobStore } from './blob-store.ts'
export {
  blockAttachment,
  blockHashes,
  type ContractApi,
  type ContractMatchers,
  chunksOf,
  codeOf,
  collect,
  digestOf,
  seededBytes
} from './material.ts'
export { createMemoryStore } from './memory-store.ts'
export { type ContractSubject, describeBlobReads } from './reads.ts'
