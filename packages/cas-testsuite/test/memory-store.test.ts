import { createMemoryStore, describeBlobStore } from '@svc/cas-testsuite'
import { describe, expect, test } from 'vitest'

describeBlobStore(
  'memory store',
  async () => {
    const store = createMemoryStore()
    return { store, dispose: () => store.close() }
  },
  { describe, test, expect }
)
