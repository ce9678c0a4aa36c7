// Runs one simulation per line of stdin: options as JSON in, results as JSON out.
import { createInterface } from 'node:readline'
import { type SimulationOptions, simulate } from './simulation.ts'

for await (const line of createInterface({ input: process.stdin })) {
  const begun = performance.now()
  const result = simulate(JSON.parse(line) as SimulationOptions)
  const tookSeconds = (performance.now() - begun) / 1000
  process.stdout.write(`${JSON.stringify({ ...result, tookSeconds })}\n`)
}
