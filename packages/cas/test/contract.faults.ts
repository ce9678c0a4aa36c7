import { describeBlobStore } from '@svc/cas-testsuite'
import { Faults } from '@svc/testkit/file-faults'
import { describe, expect, test } from 'vitest'
import { freshDiskStore } from './fresh-disk-store.ts'

describeBlobStore(
  'disk store with one thread, short reads and writes, no hard links',
  freshDiskStore({ hashThreads: 1, filePort: new Faults({ awkward: true }).filePort }),
  { describe, test, expect }
)
