import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KINDS, madeRepository } from '../../support/made-repositories.ts'
import { fakeHub, rigOf, undoAfterTests } from './fixtures.ts'
import { expectWhole } from './whole-folders.ts'

undoAfterTests()

test('40 generated repositories: every door gives the folder that was imported', async () => {
  const rig = await rigOf(await fakeHub(), { skipUnrecognized: true, mirror: true })
  const seeds = new Set<number>()
  const made = fc.tuple(fc.constantFrom(...KINDS), fc.nat(1 << 20))
  await fc.assert(
    fc.asyncProperty(made, async ([kind, seed]) => {
      seeds.add(seed)
      await expectWhole(rig, madeRepository(kind, seed), rig.mirror!)
    }),
    { numRuns: 40, endOnFailure: true }
  )
  expect(seeds.size).toBeGreaterThan(20)
}, 300_000)
