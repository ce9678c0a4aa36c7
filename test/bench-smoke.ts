// Runs rows of the benchmarks with tiny sizes, for their tests: the figures mean nothing, but the rows cannot rot.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'

export interface Report {
  readonly row: string
  readonly error?: string
  readonly lines: readonly { readonly what: string; readonly ours: string; readonly ratio?: number }[]
}

export const MAIN = new URL('../bench/main.ts', import.meta.url).pathname

/** As `pnpm test` says it: every package has been built. */
const isBuilt = process.env.SVC_TEST_BUILT === '1'

export const ratiosOf = (reports: readonly Report[]): (number | undefined)[] =>
  reports.flatMap(({ lines }) => lines.map(({ ratio }) => ratio))

/** The reports of these rows, run on the daemon's sources where nothing is built. */
export async function smoke(...rows: string[]): Promise<Report[]> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-test-'))
  try {
    const json = join(folder, 'report.json')
    const data = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : folder, 'svc-bench-smoke-'))
    try {
      const sources = isBuilt ? [] : ['--conditions=svc-source']
      const flags = [...sources, MAIN, '--smoke', ...(isBuilt ? [] : ['--source']), '--dir', data, '--json', json]
      await promisify(execFile)(process.execPath, [...flags, ...rows], { timeout: 240_000 })
      expect(readdirSync(data)).toEqual([])
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
    return (JSON.parse(readFileSync(json, 'utf8')) as { reports: Report[] }).reports
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
