// In which history a check that is taken away lets something leak: `search.ts FIRST_SEED SEEDS STEPS [WORDS]` prints a line for
// each mutation whose `what` has the words, or that no test of its own catches. Its `dies` is what is printed.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { mutatedCopy } from './mutated-copy.ts'
import { MUTATIONS } from './mutations.ts'
import { BASE, histories } from './processes.ts'

const [first = 1, count = 6, steps = 400] = process.argv.slice(2, 5).map(Number)
const words = process.argv[5]
const seeds = Array.from({ length: count }, (_, i) => first + i)
for (const mutation of MUTATIONS) {
  if (words === undefined ? mutation.caughtBy !== undefined : !mutation.what.includes(words)) continue
  const folder = mkdtempSync(join(BASE, 'search-'))
  try {
    const outcomes = await histories({ seeds, steps, main: mutatedCopy(folder, [mutation]) })
    const { seed, leak } = outcomes.at(-1)!
    const found = leak === undefined ? 'none' : `[${seed}, ${leak.at}], ${leak.door} after ${leak.step}`
    process.stdout.write(`${mutation.what}: ${found}\n`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
