import { test } from 'vitest'
import { loseDiscoveryThreads } from './broken-threads.ts'

test(
  'endless loops in the threads of the DHT and the trackers: they are ended and come back, and the job beside them is done',
  {
    timeout: 180_000
  },
  () => loseDiscoveryThreads('hang')
)
