import { vi } from 'vitest'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { describeDaemonKills, describeOperationKills } from '../support/kill-sweep.ts'

// The points are the limit, not the time that a busy machine takes for them
vi.setConfig({ testTimeout: 48 * 3600_000 })
// `SVC_KILL_STRIDE=5` takes every fifth point.
const stride = Number(process.env.SVC_KILL_STRIDE ?? 1)
describeOperationKills(KILL_SCENARIOS, stride)
describeDaemonKills(KILL_SCENARIOS, stride, { all: true })
