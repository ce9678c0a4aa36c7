// The random histories find it when any one check is taken away: each mutation is applied to a copy of the sources.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { mutatedCopy } from './mutated-copy.ts'
import { MUTATIONS } from './mutations.ts'
import { BASE, histories, type SeededOutcome } from './processes.ts'

/** Those that find a mutation soonest come first. */
const SEEDS = [43, 42, 51, 55, 52, 53, 17, 41]
const STEPS = 330

/** The first leak that two processes find; both take every other seed. */
async function firstLeak(main: string, seeds: readonly number[]): Promise<SeededOutcome | undefined> {
  const halves = [0, 1].map((half) => seeds.filter((_, i) => i % 2 === half))
  const outcomes = (await Promise.all(halves.map((half) => histories({ seeds: half, steps: STEPS, main })))).flat()
  return outcomes.find(({ leak }) => leak !== undefined)
}

function folder(): string {
  const made = mkdtempSync(join(BASE, 'mutations-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('a copy without a mutation leaks nothing', { timeout: 30 * 60_000 }, async () => {
  expect(await firstLeak(mutatedCopy(folder(), []), SEEDS)).toBeUndefined()
})

test.each(MUTATIONS)('without this it leaks: $what', { timeout: 30 * 60_000 }, async (mutation) => {
  const found = await firstLeak(mutatedCopy(folder(), [mutation]), SEEDS)
  expect(found?.leak).toBeDefined()
  const { door, step, at } = found!.leak!
  process.stdout.write(`${mutation.what}: ${door}, after ${step}, seed ${found!.seed}, step ${at}\n`)
})
