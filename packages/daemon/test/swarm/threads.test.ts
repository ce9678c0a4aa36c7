import { test } from 'vitest'
import { loseDiscoveryThreads } from './broken-threads.ts'

test('the threads of the DHT and the trackers die: they restart and announce again, and a running job finishes', () =>
  loseDiscoveryThreads('kill'))
