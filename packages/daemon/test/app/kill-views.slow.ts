import { vi } from 'vitest'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { describeDaemonKills, describeOperationKills } from '../support/kill-sweep.ts'

// The list of views after a kill within a replacement: it names what is there, or nothing. A sample; kill.faults.ts has every operation.
vi.setConfig({ testTimeout: 600_000 })
const views = KILL_SCENARIOS.filter(({ name }) => name === 'a view that takes the place of another')
describeOperationKills(views, 3)
describeDaemonKills(
  views.map((scenario) => ({
    ...scenario,
    points: { rename: [1, 2, 3, 4, 5, 6, 7, 8], rmdir: [1, 2], mkdir: [1, 3] }
  })),
  2
)
