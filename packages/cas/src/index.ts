export {
  type FilePort,
  type FilePortFactory,
  type FilePortModule,
  type FileStat,
  nodeFilePort
} from '@svc/internal-files'
export { type DiskStoreOptions, openDiskStore } from './disk-store.ts'
export { CasError, type CasErrorCode, type CasErrorDetails } from './errors.ts'
export { readStoreId } from './identity.ts'
export { Leases, withLease } from './leases.ts'
export type * from './store.ts'
