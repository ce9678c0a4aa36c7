import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { hasNginx } from '../bench/harness/nginx.ts'
import { MAIN, type Report, smoke } from './bench-smoke.ts'

const strict = process.env.SVC_REQUIRE_INTEROP === '1'

const ratiosOf = (reports: readonly Report[]): (number | undefined)[] =>
  reports.flatMap(({ lines }) => lines.map(({ ratio }) => ratio))

describe('the benchmarks run', { timeout: 250_000 }, () => {
  // Those that start a daemon many times are in bench.faults.ts.
  test('import and verify', async () => {
    const reports = await smoke('import', 'verify')
    expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
      ['import', undefined, 1],
      ['verify', undefined, 1]
    ])
    for (const ratio of ratiosOf(reports)) expect(ratio).toBeGreaterThan(0)
  })

  test.skipIf(!hasNginx() && !strict)('an import from the hub', async () => {
    const [speed, cpu] = ratiosOf(await smoke('hub'))
    expect([speed, cpu]).toEqual([expect.any(Number), undefined])
  })

  test.skipIf(!hasNginx() && !strict)('blob and resolve beside nginx', async () => {
    expect(ratiosOf(await smoke('blob', 'resolve'))).toEqual(Array.from({ length: 5 }, () => expect.any(Number)))
  })

  test.each([['--help'], ['--', '--help']])('flags are flags, behind the dashes of pnpm too: %s', async (...args) => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args])
    expect(stdout).toMatch(/^rows \(default/m)
  })

  test('a flag that does not exist is refused, behind the dashes too', async () => {
    const run = promisify(execFile)(process.execPath, [MAIN, '--', '--fast'])
    await expect(run).rejects.toMatchObject({ code: 2, stdout: '' })
  })

  test('a row that does not exist is refused', async () => {
    await expect(promisify(execFile)(process.execPath, [MAIN, 'imports'])).rejects.toMatchObject({ code: 2 })
  })
})
