// Loaded before everything else, in the process and in each of its threads: a name that leads to a public address when anybody asks for it
// first, and to loopback from then on. Who has asked is told by the size of a file that all share.

import dns from 'node:dns'
import { appendFileSync, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

dns.lookup = ((_name: string, options: { all?: boolean }, done: (...given: unknown[]) => void) => {
  const asked = process.env.SVC_TEST_LOOKUPS!
  const found = [{ address: statSync(asked).size === 0 ? '8.8.8.8' : '127.0.0.1', family: 4 }]
  appendFileSync(asked, '.')
  queueMicrotask(() => (options.all ? done(null, found) : done(null, found[0]!.address, 4)))
}) as typeof dns.lookup
syncBuiltinESMExports()
