// The short version of mutations.faults.ts: a copy of the sources runs its tests, and one mutation is found.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { failuresIn, type Mutation, mutatedCopy } from './mutated-copy.ts'
import { MUTATIONS } from './mutations.ts'
import { BASE } from './processes.ts'

test('a test passes in a copy of the sources, and fails without the check that a mutation removes', async () => {
  const mutation = MUTATIONS.find(({ caughtBy }) => caughtBy?.name !== undefined)!
  const folder = mkdtempSync(join(BASE, 'mutations-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const failures = (mutations: readonly Mutation[]): Promise<readonly string[]> => {
    const main = mutatedCopy(folder, mutations)
    return failuresIn(main.slice(0, main.indexOf('/packages/cli/')), mutation.caughtBy!)
  }
  expect(await failures([])).toEqual([])
  expect(await failures([mutation])).not.toEqual([])
})
