import { type BlobStore, type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { temporaryFolder } from './temporary-root.ts'

/** Opens an empty store in a folder of its own; `dispose` removes both. */
export const freshDiskStore =
  (options: Partial<DiskStoreOptions>) =>
  async (): Promise<{ readonly store: BlobStore; readonly dispose: () => Promise<void> }> => {
    const folder = await temporaryFolder()
    const store = await openDiskStore({ root: `${folder.path}/store`, ...options })
    return {
      store,
      dispose: async () => {
        await store.close()
        await folder.dispose()
      }
    }
  }
