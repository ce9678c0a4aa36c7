import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { MAIN, ratiosOf, smoke } from './bench-smoke.ts'

describe('the benchmarks run', { timeout: 250_000 }, () => {
  // the other rows are in bench.faults.ts.
  test('import and verify', async () => {
    const reports = await smoke('import', 'verify')
    expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
      ['import', undefined, 1],
      ['verify', undefined, 1]
    ])
    for (const ratio of ratiosOf(reports)) expect(ratio).toBeGreaterThan(0)
  })

  test.each([['--help'], ['--', '--help']])("flags work, also behind pnpm's dashes: %s", async (...args) => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args])
    expect(stdout).toMatch(/^rows \(default/m)
  })

  test('an unknown flag is refused, also behind the dashes', async () => {
    const run = promisify(execFile)(process.execPath, [MAIN, '--', '--fast'])
    await expect(run).rejects.toMatchObject({ code: 2, stdout: '' })
  })

  test('an unknown row is refused', async () => {
    await expect(promisify(execFile)(process.execPath, [MAIN, 'imports'])).rejects.toMatchObject({ code: 2 })
  })
})
