import { createMemoryStore } from '@svc/cas'
import { describeBlobStore } from '@svc/cas/contract'
import { describe, expect, test } from 'vitest'

describeBlobStore(
  'memory store',
  async () => {
    const store = createMemoryStore()
    return { store, dispose: () => store.close() }
  },
  { describe, test, expect }
)
