// A daemon that is killed before the N-th operation that changes a file of store, state or leaf layers, counted over all threads:
// N comes in the variable `KILL_AT`, and counts from the start on, or as a message, and counts from then.

import { Faults } from '@svc/testkit/file-faults'
import { startInspected } from '../../src/app/daemon.ts'
import { loadConfig } from '../../src/config/config.ts'
import { parseFlags } from '../../src/flags.ts'
import { createLog } from '../../src/log.ts'

const faults = new Faults({
  errno: 'KILL',
  // a sync changes nothing that outlives a process
  only: 'write|open|chmod|link|rename|mkdir|rmdir|clone'
})
process.umask(0o077)
process.on('message', (n: number) => {
  faults.arm(n)
  process.send!('armed')
})
const flags = parseFlags(process.argv.slice(2))
if (process.env.KILL_AT !== undefined) faults.arm(Number(process.env.KILL_AT))
await startInspected({
  config: await loadConfig(flags),
  log: createLog(),
  filePort: faults.filePort,
  ...(flags.socket !== undefined && { socketPath: flags.socket })
})
