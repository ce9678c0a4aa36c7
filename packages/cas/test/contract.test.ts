import { type DiskStoreOptions, openDiskStore } from '@svc/cas'
import { describeBlobStore } from '@svc/cas/contract'
import { Faults } from '@svc/internal-files/faults'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './temporary-root.ts'

const diskStore = (options: Partial<DiskStoreOptions>) => async () => {
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

describeBlobStore('disk store', diskStore({}), { describe, test, expect })

describeBlobStore(
  'disk store with one thread, short reads and writes, no hard links',
  diskStore({ hashThreads: 1, filePort: new Faults({ awkward: true }).filePort }),
  { describe, test, expect }
)
