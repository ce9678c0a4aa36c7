import { ClientError } from '@svc/client'
import type { ErrorCode } from '@svc/client/protocol'
import { randomFaults } from '@svc/testkit/fake-hub-faults'
import { expect, test } from 'vitest'
import { fakeHub, finished, importRepo, madeBy, rigOf, SMALL, undoAfterTests, wrongBlobs } from './fixtures.ts'

undoAfterTests()

test('random faults, seeded: the right store or the right error, never wrong bytes, never the token elsewhere', async () => {
  const allowed: ErrorCode[] = ['E_NOT_IMPORTABLE', 'E_SOURCE_UNAVAILABLE', 'E_RATE_LIMITED']
  const rig = await rigOf(await fakeHub({ repos: [SMALL], tokens: ['hf_good'] }))
  const outcome = madeBy(await importRepo(rig, SMALL.id))
  let right = 0
  for (let round = 0; round < 2; round++) {
    // one daemon sees several bad days in a row: what one left behind must not mislead the next.
    const fake = await fakeHub({ repos: [SMALL], tokens: ['hf_good'], signedUses: 6 })
    const at = await rigOf(fake, { token: 'hf_good', hub: { retry: { stallMs: 200, sleep: async () => undefined } } })
    for (let seed = round * 6; seed < round * 6 + 6; seed++) {
      fake.setFaults(randomFaults(seed, 0.02 + (seed % 5) * 0.06))
      let code: string | undefined
      try {
        const job = await finished(at, await at.client.importHf({ repo: SMALL.id }))
        code = job.error?.code
        if (code === undefined) {
          expect(madeBy(job), `seed ${seed}`).toEqual(outcome)
          right++
        }
      } catch (error) {
        if (!(error instanceof ClientError)) throw error
        code = error.code
      }
      if (code !== undefined) expect(allowed, `seed ${seed}`).toContain(code)
    }
    expect(
      fake.requests.filter(({ origin }) => origin === 'cdn').every(({ headers }) => headers.authorization === undefined)
    ).toBe(true)
    await at.daemon.close({ quick: true })
    fake.setFaults(undefined)
    const after = await rigOf(fake, { token: 'hf_good', root: at.root })
    expect(await wrongBlobs(after)).toEqual([])
    expect(madeBy(await importRepo(after, SMALL.id))).toEqual(outcome)
  }
  expect(right).toBeGreaterThan(1)
}, 120_000)
