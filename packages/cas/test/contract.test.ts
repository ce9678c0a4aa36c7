import { describeBlobStore } from '@svc/cas/contract'
import { describe, expect, test } from 'vitest'
import { freshDiskStore } from './fresh-disk-store.ts'

describeBlobStore('disk store', freshDiskStore({}), { describe, test, expect })
