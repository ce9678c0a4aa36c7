/**
 * `pnpm test`: builds, then makes the other checks while the tests run. Tests wait a lot, for disks, timers and programs of others; the
 * checks take the cores meanwhile, at a lower priority. Arguments are vitest's: `pnpm test packages/ref`. What the checks say comes last.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { CHECKS } from './checks.ts'

const root = join(import.meta.dirname, '..')
const CHECK = join(import.meta.dirname, 'check.ts')

const build = spawn(process.execPath, [CHECK, 'build'], { cwd: root, stdio: 'inherit' })
const [built] = await once(build, 'close')
if (built !== 0) process.exit(1)

const others = CHECKS.map(({ name }) => name).filter((name) => name !== 'build')
const checks = spawn(process.execPath, [CHECK, ...others], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
if (checks.pid !== undefined) setPriority(checks.pid, constants.priority.PRIORITY_BELOW_NORMAL)
let said = ''
checks.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
const checked = once(checks, 'close')

const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const tests = spawn(process.execPath, [vitest, 'run', ...process.argv.slice(2).filter((word) => word !== '--')], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SVC_TEST_BUILT: '1' }
})
const tested = once(tests, 'close')

const [testCode] = await tested
const [checkCode] = await checked
console.log(said.trimEnd())
if (testCode !== 0 || checkCode !== 0) process.exitCode = 1
