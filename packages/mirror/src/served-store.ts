import type { DiskBlobStore } from '@svc/cas'

/** The store whose models are served. What is written of unfinished blobs is known to the process that owns it. */
export type ServedStore = Pick<DiskBlobStore, 'stat' | 'open'> & Partial<Pick<DiskBlobStore, 'partialStatus'>>
