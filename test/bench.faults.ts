// The rows of the benchmarks; import and verify are in bench.slow.ts.
import { expect, test } from 'vitest'
import { hasNginx } from '../bench/harness/nginx.ts'
import { ratiosOf, smoke } from './bench-smoke.ts'

const strict = process.env.SVC_REQUIRE_INTEROP === '1'

test('the benchmarks of many files, memory and starts run', { timeout: 250_000 }, async () => {
  const reports = await smoke('import-many', 'import-memory', 'start')
  expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
    ['import-memory', undefined, 3],
    ['import-many', undefined, 3],
    ['start', undefined, 10]
  ])
  for (const { row, lines } of reports)
    if (row === 'import-many') for (const { ratio } of lines) expect(ratio).toBeGreaterThan(0)
})

test('the curves of growth are drawn', { timeout: 250_000 }, async () => {
  const reports = await smoke('growth-names', 'growth-import')
  expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
    ['growth-names', undefined, 5],
    ['growth-import', undefined, 4]
  ])
})

test('the benchmarks of peers, of upkeep and of combined load run', { timeout: 250_000 }, async () => {
  const reports = await smoke('first', 'webtorrent', 'together', 'upkeep', 'growth-swarm', 'reflink', 'adopt')
  expect(reports.map(({ row, error, lines }) => [row, error, lines.length])).toEqual([
    ['reflink', undefined, 1],
    ['adopt', undefined, 2],
    ['first', undefined, 2],
    ['webtorrent', undefined, 1],
    ['together', undefined, 2],
    ['upkeep', undefined, 6],
    ['growth-swarm', undefined, 6]
  ])
})

test.skipIf(!hasNginx() && !strict)('an import from the hub runs', async () => {
  const [speed, cpu] = ratiosOf(await smoke('hub'))
  expect([speed, cpu]).toEqual([expect.any(Number), undefined])
})

test.skipIf(!hasNginx() && !strict)('blob and resolve run beside nginx', async () => {
  expect(ratiosOf(await smoke('blob', 'resolve'))).toEqual(Array.from({ length: 8 }, () => expect.any(Number)))
})

test('the library is measured beside its peers', async () => {
  const [report] = await smoke('library')
  expect([report?.error, report?.lines.length]).toEqual([undefined, 2])
})

test('standing views are measured', async () => {
  const [report] = await smoke('standing')
  expect([report?.error, report?.lines.length]).toEqual([undefined, 3])
})

test('the bounds of the local rows are measured', { timeout: 250_000 }, async () => {
  const [report] = await smoke('bounds')
  expect(report?.error).toBe(undefined)
  for (const { ours } of report!.lines) expect(ours).toMatch(/^\d[\d.]* (?:ms|s|MiB)$/)
  expect(report!.lines.length).toBeGreaterThanOrEqual(11)
})
