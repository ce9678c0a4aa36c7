import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Constants, limitTable, withLimitTable } from '../scripts/limits.ts'

const root = join(import.meta.dirname, '..')

test('the table of docs/budgets.md has the constants of the sources (`pnpm exec node scripts/limits.ts` writes it)', () => {
  const page = readFileSync(join(root, 'docs/budgets.md'), 'utf8')
  expect(withLimitTable(page, new Constants(root))).toBe(page)
})

/** The constants of one source file, `bowl.ts` of a package. */
function constantsOf(source: string): Constants {
  const folder = mkdtempSync(join(tmpdir(), 'svc-limits-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'packages/fruit/src'), { recursive: true })
  writeFileSync(join(folder, 'packages/fruit/src/bowl.ts'), source)
  return new Constants(folder)
}
const row = (limit: string) => ({ Fruit: [{ what: 'pears', limit, per: 'bowl', beyond: 'wait', tests: 'bowl' }] })

test.each([
  ['const MAX_PEARS = 2_000', '{bowl#MAX_PEARS}', '2,000'],
  ['const PEAR_BYTES = 64 << 10', '{bowl#PEAR_BYTES}', '64 KiB'],
  ['export const PEAR_BYTES = 4 * 1024 * 1024', '{bowl#PEAR_BYTES}', '4 MiB'],
  ['const PEAR_BYTES = 16 * 2 ** 20', '{bowl#PEAR_BYTES}', '16 MiB'],
  ['const PEARS = 500e9', '{bowl#PEARS|bytes}', '500 GB'],
  ['const RIPE_MS = 15 * 60_000', '{bowl#RIPE_MS}', '15 min'],
  ['const RIPE_MS = 250', '{bowl#RIPE_MS}', '250 ms'],
  ['const RATES = { total: 5_000, each: 200 }', '{bowl#RATES.each}/s', '200/s'],
  ['take(options.maxPears ?? 500)', '{bowl#maxPears}', '500'],
  ['const MAX_PEARS = 7', '{knife#MAX_PEARS}', '7']
])('%s, as %s, is %s', (source, limit, shown) => {
  expect(limitTable(constantsOf(source), row(limit))).toContain(
    `| Fruit | pears | ${shown} (bowl) | wait | \`bowl.test.ts\` |`
  )
})

test('a limit that no longer exists in the sources is an error', () => {
  expect(() => limitTable(constantsOf('const MAX_PLUMS = 3'), row('{bowl#MAX_PEARS}'))).toThrow('MAX_PEARS')
})
