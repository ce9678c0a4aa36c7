// Whichever check is taken away, something that runs finds it: the random history that the mutation names, or the test. Each mutation
// is applied to a copy of the sources; two run at a time, and each has a line of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Gate } from '@svc/internal-concurrency'
import { describe, expect, test } from 'vitest'
import { type DirectTest, failuresIn, type Mutation, mutatedCopy } from './mutated-copy.ts'
import { MUTATIONS } from './mutations.ts'
import { BASE, histories } from './processes.ts'

/** What happens at once may change the order of what a history finds by this many steps. */
const MORE_STEPS = 100
const timeout = 60 * 60_000

const two = new Gate(2)
/** Runs something on a copy of the sources with mutations. */
const onCopy = <T>(mutations: readonly Mutation[], run: (main: string) => Promise<T>): Promise<T> =>
  two.run(undefined, async () => {
    const folder = mkdtempSync(join(BASE, 'mutations-'))
    try {
      return await run(mutatedCopy(folder, mutations))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
const copyOf = (main: string): string => main.slice(0, main.indexOf('/packages/cli/'))
const tell = (line: string): void => void process.stdout.write(`${line}\n`)

const BY_HISTORY = MUTATIONS.flatMap(({ dies, ...rest }) => (dies === undefined ? [] : [{ dies, ...rest }]))
const BY_TEST = MUTATIONS.flatMap(({ caughtBy, ...rest }) => (caughtBy === undefined ? [] : [{ caughtBy, ...rest }]))

/** The histories that mutations name, as long as the longest of each. */
const LONGEST = new Map<number, number>()
for (const [seed, step] of BY_HISTORY.map(({ dies }) => dies)) LONGEST.set(seed, Math.max(step, LONGEST.get(seed) ?? 0))

describe.concurrent('with all checks', () => {
  test.for([...LONGEST])('history %i leaks nothing', { timeout }, async ([seed, step]) => {
    const outcomes = await onCopy([], (main) => histories({ seeds: [seed], steps: step + MORE_STEPS, main }))
    expect(outcomes.map(({ leak }) => leak)).toEqual([undefined])
  })

  test('all tests pass that mutations name', { timeout }, async () => {
    const failures: DirectTest[] = []
    for (const file of new Set(BY_TEST.map(({ caughtBy }) => caughtBy.file)))
      await onCopy([], async (main) => {
        for (const name of await failuresIn(copyOf(main), { file })) failures.push({ file, name })
      })
    expect(failures).toEqual([])
  })
})

describe.concurrent('without a check', () => {
  // where it does not die any more, search.ts finds the history in which it does
  test.for(BY_HISTORY)('a history leaks: $what', { timeout }, async ({ dies: [seed, step], ...mutation }) => {
    const [outcome] = await onCopy([mutation], (main) => histories({ seeds: [seed], steps: step + MORE_STEPS, main }))
    expect(outcome?.leak).toBeDefined()
    const { door, step: after, at } = outcome!.leak!
    tell(`${mutation.what}: seed ${seed}, step ${at}, ${door} after ${after}`)
  })

  test.for(BY_TEST)('a test of its own fails: $what', { timeout }, async ({ caughtBy, ...mutation }) => {
    const failures = await onCopy([mutation], (main) => failuresIn(copyOf(main), caughtBy))
    expect(failures).not.toEqual([])
    tell(`${mutation.what}: ${caughtBy.file}, ${failures.join('; ')}`)
  })
})
