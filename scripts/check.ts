/**
 * `pnpm check`: all checks, two lanes at a time; what a check prints is shown when it fails. `pnpm check NAME…` runs some of them.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { CHECKS, type Check, runStep } from './checks.ts'

const root = join(import.meta.dirname, '..')
/** What a check needs to have ended before: exports are read from built declarations. */
const AFTER: Readonly<Record<string, string>> = { docstrings: 'build', api: 'build' }

async function perform({ name, what, steps }: Check): Promise<boolean> {
  const started = performance.now()
  for (const step of steps) {
    const { code, output } = await runStep(step, root)
    if (code === 0) continue
    console.log(`✘ ${name}: ${what}\n$ ${step.join(' ')}\n${output.trimEnd()}\n`)
    return false
  }
  console.log(`✔ ${name.padEnd(10)} ${((performance.now() - started) / 1000).toFixed(1).padStart(5)} s  ${what}`)
  return true
}

const names = process.argv.slice(2).filter((word) => word !== '--')
const unknown = names.find((name) => !CHECKS.some((check) => check.name === name))
if (unknown !== undefined) {
  console.error(`there is no check ${JSON.stringify(unknown)}; there are: ${CHECKS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const queue: Check[] = CHECKS.filter(({ name }) => names.length === 0 || names.includes(name))
const running = new Map<string, Promise<boolean>>()
const ended: Promise<boolean>[] = []
async function lane(): Promise<void> {
  for (;;) {
    const check = queue.shift()
    if (check === undefined) return
    await running.get(AFTER[check.name] ?? '')
    const outcome = perform(check)
    running.set(check.name, outcome)
    ended.push(outcome)
    await outcome
  }
}
await Promise.all(Array.from({ length: Math.max(2, Math.min(4, availableParallelism())) }, lane))
if ((await Promise.all(ended)).includes(false)) process.exitCode = 1
