import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { withResults } from '../scripts/performance.ts'

const root = join(import.meta.dirname, '..')

test('docs/performance.md has the newest results (`node scripts/performance.ts` writes them)', () => {
  const page = readFileSync(join(root, 'docs/performance.md'), 'utf8')
  expect(withResults(page, root)).toBe(page)
})

test('a newer results file makes the page outdated', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-results-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'bench/results'), { recursive: true })
  const put = (date: string, ratio: number): void => {
    const line = { what: 'pears', ours: '2 s', peer: 'plums 1 s', ratio, target: '≥ 1', met: ratio >= 1 }
    const facts = { date, machine: 'a bowl', conditions: 'ripe', versions: 'Node 24' }
    const reports = [{ row: 'eat', lines: [line] }]
    writeFileSync(join(folder, `bench/results/${date}.json`), JSON.stringify({ ...facts, reports }))
  }
  put('2026-01-01', 0.5)
  const page = withResults('<!-- begin: scripts/performance.ts --><!-- end -->', folder)
  expect(page).toContain('| `eat` | pears | 2 s | plums 1 s | 0.50 | ≥ 1: **missed** |')
  expect(withResults(page, folder)).toBe(page)
  put('2026-01-02', 1.25)
  expect(withResults(page, folder)).toContain('| 1.25 | ≥ 1: met |')
})
