import { vi } from 'vitest'
import { KILL_SCENARIOS } from '../support/kill-scenarios.ts'
import { describeDaemonErrors } from '../support/kill-sweep.ts'

vi.setConfig({ testTimeout: 30 * 60_000 })
// `SVC_KILL_STRIDE=5` takes every fifth point.
describeDaemonErrors(KILL_SCENARIOS, [0, 1, 2, 4], Number(process.env.SVC_KILL_STRIDE ?? 1))
