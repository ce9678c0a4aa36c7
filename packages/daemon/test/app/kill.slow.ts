import { vi } from 'vitest'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { describeDaemonKills } from '../support/kill-sweep.ts'

// One kill of a few, for every commit; `kill.faults.ts` has them all.
vi.setConfig({ testTimeout: 120_000 })
describeDaemonKills(
  KILL_SCENARIOS.filter(({ name }) => name === 'a local import' || name === 'a change of a tag'),
  Infinity
)
