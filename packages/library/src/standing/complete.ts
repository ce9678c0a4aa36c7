import { statSync } from 'node:fs'
import type { DiskBlobStore } from '@svc/cas'
import type { Manifest } from '@svc/manifest'

/** Whether the store has every blob of a manifest, by their sizes. */
export const isManifestComplete = ({ files }: Manifest, store: Pick<DiskBlobStore, 'blobPath'>): boolean =>
  files.every(({ digest, size }) => statSync(store.blobPath(digest), { throwIfNoEntry: false })?.size === size)
