export { replaceFile } from './atomic-file.ts'
export { type DiskStoreOptions, openDiskStore } from './disk-store.ts'
export { CasError, type CasErrorCode, type CasErrorDetails } from './errors.ts'
export {
  type FilePort,
  type FilePortFactory,
  type FilePortModule,
  type FileStat,
  nodeFilePort
} from './file-port.ts'
export { createMemoryStore } from './memory-store.ts'
export type * from './store.ts'
