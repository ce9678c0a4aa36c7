import { test } from 'vitest'
import { loseDhtThread } from './broken-threads.ts'

test('a DHT thread that dies is restarted and answers again, and a running job finishes', () => loseDhtThread('kill'))
