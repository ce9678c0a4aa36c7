import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mergeResults, type Results } from '../bench/harness/report.ts'
import type { Line } from '../bench/harness/row.ts'
import { withResults } from '../scripts/performance.ts'

const root = join(import.meta.dirname, '..')

test('docs/performance.md has the newest results (`pnpm exec node scripts/performance.ts` writes them)', () => {
  const page = readFileSync(join(root, 'docs/performance.md'), 'utf8')
  expect(withResults(page, root)).toBe(page)
})

test('each row that misses a target has a sentence that says why, and no other row has one', () => {
  const [, table = '', why = ''] = readFileSync(join(root, 'docs/performance.md'), 'utf8').split(
    /^## (?:Results|Missed).*$/m
  )
  let row = ''
  const missed = table.split('\n').flatMap((line) => {
    row = /^\| `([a-z-]+)`/.exec(line)?.[1] ?? row
    return line.includes('**missed**') ? [row] : []
  })
  const explained = (why.split('\n## ')[0] ?? '').matchAll(/^- (.*?):/gm)
  const named = [...explained].flatMap(([, start = '']) => [...start.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name))
  expect(new Set(named)).toEqual(new Set(missed))
})

describe('newer results', () => {
  const line = (ratio: number): Line => ({
    what: 'pears',
    ours: '2 s',
    peer: 'plums 1 s',
    ratio,
    target: '≥ 1',
    met: ratio >= 1
  })
  const resultsOf = (date: string, ratios: Readonly<Record<string, number>>): Results => ({
    runs: [{ date, machine: 'a bowl', conditions: 'ripe', versions: 'Node 24' }],
    reports: Object.entries(ratios).map(([row, ratio]) => ({ row, date, lines: [line(ratio)] }))
  })

  test('make the page outdated', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-results-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, 'bench/results'), { recursive: true })
    const put = (date: string, ratios: Readonly<Record<string, number>>): void =>
      writeFileSync(join(folder, `bench/results/${date}.json`), JSON.stringify(resultsOf(date, ratios)))
    put('2026-01-01', { eat: 0.5, peel: 2, wash: 3 })
    const page = withResults('<!-- begin: scripts/performance.ts --><!-- end -->', folder)
    expect(page).toContain('- 2026-01-01: a bowl; Node 24; ripe.')
    expect(page).toContain('| `eat` | pears | 2 s | plums 1 s | 0.50 | ≥ 1: **missed** |')
    expect(withResults(page, folder)).toBe(page)
    put('2026-01-02', { eat: 1.25 })
    const newer = withResults(page, folder)
    expect(newer).toContain('- 2026-01-02, `eat`: a bowl; Node 24; ripe.\n- 2026-01-01, all other rows: ')
    expect(newer).toContain('| 1.25 | ≥ 1: met |')
  })

  test('replace the rows that they have; a run without rows is forgotten, a failed row is not kept', () => {
    const older = resultsOf('2026-01-01', { eat: 0.5, peel: 2 })
    const half = mergeResults(older, resultsOf('2026-01-02', { peel: 3 }))
    expect(half.reports.map(({ row, date }) => [row, date])).toEqual([
      ['eat', '2026-01-01'],
      ['peel', '2026-01-02']
    ])
    const failed = { row: 'eat', date: '2026-01-03', lines: [], error: 'a stone' }
    expect(mergeResults(half, { ...resultsOf('2026-01-03', {}), reports: [failed] })).toEqual(half)
    expect(mergeResults(half, resultsOf('2026-01-03', { eat: 1 })).runs.map(({ date }) => date)).toEqual([
      '2026-01-02',
      '2026-01-03'
    ])
  })
})
