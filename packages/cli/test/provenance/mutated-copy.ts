import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** A check that is taken away: one place of a source file. */
export interface Mutation {
  readonly what: string
  /** From the root of the repository. */
  readonly file: string
  /** Must be there once, as it is written here. */
  readonly find: string
  readonly replace: string
  /** The test that fails without it, where random histories meet it too seldom, or never: it takes something else to happen meanwhile. */
  readonly caughtBy?: DirectTest
  /** The random history that leaks without it, and after which step. */
  readonly dies?: readonly [seed: number, step: number]
}

/** A test file from the root of the repository, and perhaps a part of a test's name. */
export interface DirectTest {
  readonly file: string
  readonly name?: string
}

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
/** The packages that are copied, and found by each other in the copy. */
const COPIED = ['classify', 'cli', 'daemon', 'internal/state', 'library', 'mirror', 'oci', 'sharing']

/** Copies the packages with these mutations, and their tests, into `folder`. @returns the copy's `main.ts` */
export function mutatedCopy(folder: string, mutations: readonly Mutation[]): string {
  const copy = mkdtempSync(join(folder, 'copy-'))
  for (const name of COPIED) {
    const [from, to] = [join(ROOT, 'packages', name), join(copy, 'packages', name)]
    mkdirSync(to, { recursive: true })
    cpSync(join(from, 'src'), join(to, 'src'), { recursive: true })
    cpSync(join(from, 'package.json'), join(to, 'package.json'))
    linkModules(copy, join(from, 'node_modules'), join(to, 'node_modules'))
  }
  for (const test of ['cli', 'daemon', 'internal/state', 'library', 'mirror', 'sharing'].map(
    (name) => `packages/${name}/test`
  ))
    cpSync(join(ROOT, test), join(copy, test), { recursive: true })
  for (const name of [
    'package.json',
    'vitest.config.ts',
    'vitest.slow.config.ts',
    'test/built-page.ts',
    'test/built-threads.ts',
    'test/kept-sockets.ts',
    'test/kept-threads.ts',
    'test/put-back.ts',
    'scripts/skipped-reporter.ts',
    'scripts/structure/wall-time.ts'
  ])
    cpSync(join(ROOT, name), join(copy, name))
  for (const name of ['node_modules', 'packages/signature', 'packages/ui'])
    symlinkSync(join(ROOT, name), join(copy, name))
  for (const mutation of mutations) mutate(join(copy, mutation.file), mutation)
  return join(copy, 'packages/cli/test/provenance/main.ts')
}

/** Runs a test of a copy. @returns what failed of it, by name. @throws Error where it did not run */
export async function failuresIn(copy: string, { file, name }: DirectTest): Promise<readonly string[]> {
  const report = join(copy, `report-${file.replaceAll('/', '-')}.json`)
  const config = file.endsWith('.slow.ts') ? ['--config', 'vitest.slow.config.ts'] : []
  const words = ['run', file, ...config, '--reporter=json', `--outputFile=${report}`, '--testTimeout=30000']
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, ...words, ...(name === undefined ? [] : ['-t', name])], {
    cwd: copy,
    // as in the first tier, which the time-out is for, and with a report of its own
    env: { ...process.env, SVC_ROOM_RUNS: undefined, SVC_TEST_REPORT: undefined },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (!existsSync(report)) throw new Error(`${file} was not run: ${stderr}`)
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: readonly TestResult[] }
  const all = testResults.flatMap(({ assertionResults }) => assertionResults)
  if (!all.some(({ status }) => status === 'passed' || status === 'failed'))
    throw new Error(`${file} has no test "${name}" that runs: ${stderr}`)
  return all.filter(({ status }) => status === 'failed').map(({ title }) => title)
}

interface TestResult {
  readonly assertionResults: readonly { readonly title: string; readonly status: string }[]
}

/** The same packages as the original has, but those that are copied. */
function linkModules(copy: string, from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from)) {
    if (name.startsWith('.')) continue
    if (name.startsWith('@') && lstatSync(join(from, name)).isDirectory()) {
      mkdirSync(join(to, name))
      for (const each of readdirSync(join(from, name))) {
        const target = realpathSync(join(from, name, each))
        const isCopied = COPIED.some((name) => target === join(ROOT, 'packages', name))
        symlinkSync(isCopied ? join(copy, relative(ROOT, target)) : target, join(to, name, each))
      }
    } else symlinkSync(realpathSync(join(from, name)), join(to, name))
  }
}

/** @throws Error where the source is not what the mutation expects */
function mutate(path: string, { what, file, find, replace }: Mutation): void {
  const source = readFileSync(path, 'utf8')
  const count = source.split(find).length - 1
  if (count !== 1)
    throw new Error(`the mutation "${what}" expects its text once in ${file}, and finds it ${count} times`)
  writeFileSync(
    path,
    source.replace(find, () => replace)
  )
}
