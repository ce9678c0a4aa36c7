import { describe, expect, test } from 'vitest'
import { createMemoryStore } from '@svc/cas'
import { describeBlobStore } from '@svc/cas/contract'

describeBlobStore(
  'memory store',
  async () => {
    const store = createMemoryStore()
    return { store, dispose: () => store.close() }
  },
  { describe, test, expect }
)
