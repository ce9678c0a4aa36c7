// Whatever happens on two machines, and whoever asks them what by whichever door: what nobody may have is not given. The longer
// form is random-histories.faults.ts; mutations.faults.ts shows that each check is needed.
import { expect, test, vi } from 'vitest'
import { runHistory } from './history.ts'
import { BASE } from './processes.ts'

vi.setConfig({ testTimeout: 120_000 })

test('nothing that is withheld leaves by any door', async () => {
  const { steps, leak, given } = await runHistory({ seed: 200, steps: 120, base: BASE })
  expect(leak).toBeUndefined()
  expect(steps).toBe(120)
  // what others may have is given by the doors that random strangers try
  for (const door of ['webseed', 'swarm', 'hub mirror', 'OCI mirror', 'S3 mirror'])
    expect([door, given[door] ?? 0]).not.toEqual([door, 0])
})
