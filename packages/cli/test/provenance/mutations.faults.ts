// Whichever check is taken away, something that runs finds it: the random histories, or the test that the mutation names. Each
// mutation is applied to a copy of the sources.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type DirectTest, failuresIn, mutatedCopy } from './mutated-copy.ts'
import { MUTATIONS } from './mutations.ts'
import { BASE, histories, type SeededOutcome } from './processes.ts'

/** One of these finds each mutation that no test of its own does. */
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

const copyOf = (main: string): string => main.slice(0, main.indexOf('/packages/cli/'))

test('in a copy without a mutation all tests pass that mutations name', { timeout: 30 * 60_000 }, async () => {
  const copy = copyOf(mutatedCopy(folder(), []))
  const files = new Set(MUTATIONS.flatMap(({ caughtBy }) => (caughtBy === undefined ? [] : [caughtBy.file])))
  const failures: DirectTest[] = []
  for (const file of files) for (const name of await failuresIn(copy, { file })) failures.push({ file, name })
  expect(failures).toEqual([])
})

test.each(
  MUTATIONS.flatMap(({ caughtBy, ...mutation }) => (caughtBy === undefined ? [] : [{ caughtBy, ...mutation }]))
)('without this a test of its own fails: $what', { timeout: 30 * 60_000 }, async ({ caughtBy, ...mutation }) => {
  const failures = await failuresIn(copyOf(mutatedCopy(folder(), [mutation])), caughtBy)
  expect(failures).not.toEqual([])
  process.stdout.write(`${mutation.what}: ${caughtBy.file}, ${failures.join('; ')}\n`)
})

test.each(MUTATIONS.filter(({ caughtBy }) => caughtBy === undefined))(
  'without this it leaks: $what',
  { timeout: 30 * 60_000 },
  async (mutation) => {
    const { seed } = mutation
    const main = mutatedCopy(folder(), [mutation])
    // the one that found it, and the others only where histories have changed since
    const found = (seed && (await firstLeak(main, [seed]))) || (await firstLeak(main, SEEDS))
    expect(found?.leak).toBeDefined()
    const { door, step, at } = found!.leak!
    process.stdout.write(`${mutation.what}: ${door}, after ${step}, seed ${found!.seed}, step ${at}\n`)
  }
)
