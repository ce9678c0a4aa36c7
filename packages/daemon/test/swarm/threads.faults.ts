import { test } from 'vitest'
import { loseDhtThread } from './broken-threads.ts'

test(
  'an endless loop in the thread of the DHT: it is ended and comes back, and the job beside it is done',
  {
    timeout: 180_000
  },
  () => loseDhtThread('hang')
)
