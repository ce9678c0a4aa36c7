import { test } from 'vitest'
import { loseDhtThread } from './broken-threads.ts'

test('the thread of the DHT dies: it restarts and answers again, and a running job finishes', () =>
  loseDhtThread('kill'))
