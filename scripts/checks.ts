import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'

/** A part of `pnpm check`: everything about the tree that needs no test to run. */
export interface Check {
  readonly name: string
  readonly what: string
  /** Programs with their arguments, one after the other, in the root of the tree. `node` is the one that runs the checks. */
  readonly steps: readonly (readonly [program: string, ...args: string[]])[]
}

/** The longest first, so that lanes which run them end together. */
export const CHECKS = [
  { name: 'build', what: 'every package builds', steps: [['turbo', 'run', 'build']] },
  // in one program: each package's own would read and check again what it imports of the others.
  {
    name: 'types',
    what: 'the types of all packages, their tests and scripts',
    steps: [
      // with the types of a browser, which other packages do not have.
      ['tsc', '-p', 'packages/ui/tsconfig.json'],
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
  {
    name: 'dead',
    what: 'nothing is unused or undeclared (knip)',
    steps: [['knip', '--no-config-hints', '--tsConfig', 'tsconfig.build.json']]
  },
  { name: 'house', what: 'pure modules, sizes, names, words', steps: [['node', 'scripts/check-structure.ts']] },
  {
    name: 'python',
    what: 'what the Python client takes from the API is current',
    steps: [['node', 'scripts/python.ts', 'check']]
  },
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
] as const satisfies readonly Check[]

export type CheckName = (typeof CHECKS)[number]['name']

const BINS = ['node_modules/.bin', 'scripts/node_modules/.bin'].map((bin) => join(import.meta.dirname, '..', bin))

/** Runs a step with the tools of this repository, in any tree. `output` is of both streams. */
export function runStep(
  [program, ...args]: Check['steps'][number],
  folder: string
): Promise<{ readonly code: number; readonly output: string }> {
  const env = { ...process.env, PATH: [...BINS, process.env.PATH].join(delimiter), TURBO_TELEMETRY_DISABLED: '1' }
  return new Promise((resolve) => {
    const command = program === 'node' ? process.execPath : program
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    child.on('error', (error) => resolve({ code: 1, output: error.message }))
    child.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}
