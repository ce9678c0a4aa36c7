import { test } from 'vitest'
import { loseDiscoveryThreads } from './broken-threads.ts'

test('the threads of the DHT and the trackers die: they come back and announce anew, and the job beside them is done', () =>
  loseDiscoveryThreads('kill'))
