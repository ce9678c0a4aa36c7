import type { DiskBlobStore } from '@svc/cas'
import type { Manifest } from '@svc/manifest'
import { stampOf } from '../library/stamp.ts'

/** Whether the store has every blob of a manifest, by their sizes. */
export const isManifestComplete = ({ files }: Manifest, store: Pick<DiskBlobStore, 'blobPath'>): boolean =>
  files.every(({ digest, size }) => stampOf(store.blobPath(digest))?.size === size)
