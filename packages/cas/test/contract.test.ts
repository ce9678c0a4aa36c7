import { describeBlobStore } from './contract/blob-store.ts'
import { freshDiskStore } from './fresh-disk-store.ts'

describeBlobStore('disk store', freshDiskStore({}))
