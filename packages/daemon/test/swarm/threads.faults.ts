import { test } from 'vitest'
import { loseDhtThread } from './broken-threads.ts'

test(
  'a DHT thread in an endless loop is ended and restarted, and a running job finishes',
  {
    timeout: 180_000
  },
  () => loseDhtThread('hang')
)
