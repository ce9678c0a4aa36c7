import { describeBlobStore } from '@svc/cas-testsuite'
import { describe, expect, test } from 'vitest'
import { freshDiskStore } from './fresh-disk-store.ts'

describeBlobStore('disk store', freshDiskStore({}), { describe, test, expect })
