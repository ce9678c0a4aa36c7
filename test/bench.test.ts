import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { hasNginx } from '../bench/harness/nginx.ts'

interface Report {
  readonly row: string
  readonly error?: string
  readonly lines: readonly { readonly what: string; readonly ours: string; readonly ratio?: number }[]
}

const MAIN = new URL('../bench/main.ts', import.meta.url).pathname
const strict = process.env.SVC_REQUIRE_INTEROP === '1'

/** Runs rows with tiny sizes on the daemon's sources: the figures mean nothing, but the rows cannot rot. */
async function smoke(...rows: string[]): Promise<Report[]> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-test-'))
  // a dozen starts of the daemon from its sources: compiled once
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
  try {
    const json = join(folder, 'report.json')
    const data = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : folder, 'svc-bench-smoke-'))
    try {
      const flags = ['--conditions=svc-source', MAIN, '--smoke', '--source', '--dir', data, '--json', json]
      await promisify(execFile)(process.execPath, [...flags, ...rows], { timeout: 240_000, env })
      expect(readdirSync(data)).toEqual([])
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
    return (JSON.parse(readFileSync(json, 'utf8')) as { reports: Report[] }).reports
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const ratiosOf = (reports: readonly Report[]): (number | undefined)[] =>
  reports.flatMap(({ lines }) => lines.map(({ ratio }) => ratio))

describe('the benchmarks run', { timeout: 250_000 }, () => {
  test('imports, verify and start', async () => {
    const reports = await smoke('import', 'import-many', 'import-memory', 'verify', 'start')
    expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
      ['import', undefined, 1],
      ['import-memory', undefined, 2],
      ['import-many', undefined, 3],
      ['verify', undefined, 1],
      ['start', undefined, 5]
    ])
    for (const ratio of ratiosOf(reports.filter(({ row }) => row !== 'start' && row !== 'import-memory')))
      expect(ratio).toBeGreaterThan(0)
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
