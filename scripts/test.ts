/**
 * `pnpm test`: builds, then runs the tests and the other checks in parallel. Tests often wait for disks, timers and other programs; the
 * checks use the cores in the meantime, at a lower priority. Arguments go to vitest: `pnpm test packages/ref`. The output of the
 * checks is printed last.
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
let checkOutput = ''
checks.stdout.setEncoding('utf8').on('data', (text: string) => (checkOutput += text))
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
console.log(checkOutput.trimEnd())
if (testCode !== 0 || checkCode !== 0) process.exitCode = 1
