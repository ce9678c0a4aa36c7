/**
 * `pnpm check`: everything about the tree that needs no test to run. Two lanes at a time; what a check prints is shown when it
 * fails. `pnpm check NAME…` runs some of them.
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

interface Check {
  readonly name: string
  readonly what: string
  /** Programs, one after the other. */
  readonly steps: readonly (readonly [program: string, ...args: string[]])[]
}

const root = join(import.meta.dirname, '..')
// The longest first, so that the lanes end together.
const CHECKS: readonly Check[] = [
  {
    name: 'types',
    what: 'the build and the types of every package, its tests and these scripts',
    steps: [
      ['turbo', 'run', 'build', 'typecheck'],
      ['tsc', '-p', 'tsconfig.json']
    ]
  },
  {
    name: 'docs',
    what: 'the reference of the public interface is made without a warning',
    steps: [['typedoc', '--options', 'typedoc.json', '--emit', 'none']]
  },
  {
    name: 'format',
    what: 'format and lint (Biome)',
    steps: [['biome', 'ci', '--error-on-warnings', '--diagnostic-level=warn', '.']]
  },
  {
    name: 'imports',
    what: 'who imports whom (dependency-cruiser)',
    steps: [['depcruise', '--config', '.dependency-cruiser.js', 'packages', 'bench', 'scripts', 'test']]
  },
  { name: 'dead', what: 'nothing is unused or undeclared (knip)', steps: [['knip', '--no-config-hints']] },
  { name: 'house', what: 'pure modules, sizes, names, words', steps: [['node', 'scripts/check-structure.ts']] },
  {
    name: 'docstrings',
    what: 'every public export says what it is',
    steps: [['node', 'scripts/api.ts', 'undocumented']]
  },
  {
    name: 'api',
    what: 'reports of the public interface are current',
    steps: [['node', 'scripts/api.ts', 'check']]
  }
]
/** What a check needs to have ended before: exports are read from built declarations. */
const AFTER: Readonly<Record<string, string>> = { docstrings: 'types', api: 'types' }

function run([program, ...args]: Check['steps'][number]): Promise<{ code: number; output: string }> {
  const path = ['node_modules/.bin', 'scripts/node_modules/.bin'].map((bin) => join(root, bin)).join(':')
  const env = { ...process.env, PATH: `${path}:${process.env.PATH}`, TURBO_TELEMETRY_DISABLED: '1' }
  const [command, argv] = program === 'node' ? [process.execPath, args] : [program, args]
  return new Promise((resolve) => {
    const child = spawn(command, argv, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.on('error', (error) => resolve({ code: 1, output: error.message }))
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

async function perform({ name, what, steps }: Check): Promise<boolean> {
  const started = performance.now()
  for (const step of steps) {
    const { code, output } = await run(step)
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

const queue = CHECKS.filter(({ name }) => names.length === 0 || names.includes(name))
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
