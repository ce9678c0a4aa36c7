// Histories in a process of their own, until one of them leaks: `main.ts FOLDER STEPS SEED…` prints the outcome of each as a
// line of JSON.
import { runHistory } from './history.ts'

const [base, steps, ...seeds] = process.argv.slice(2)
const sweepEvery = Number(process.env.SVC_PROVENANCE_SWEEP ?? 100)
for (const seed of seeds) {
  const outcome = await runHistory({ seed: Number(seed), steps: Number(steps), base: base!, sweepEvery })
  process.stdout.write(`${JSON.stringify({ seed: Number(seed), ...outcome })}\n`)
  if (outcome.leak !== undefined) break
}
