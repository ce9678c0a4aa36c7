import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const scratch = mkdtempSync(join(tmpdir(), 'svc-summary-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const script = fileURLToPath(new URL('../scripts/test-summary.ts', import.meta.url))
type File = [status: 'passed' | 'failed', ...tests: ('passed' | 'failed' | 'skipped' | 'pending')[]]
let reports = 0
function reportOf(success: boolean, ...files: File[]): string {
  const report = join(scratch, `report-${reports++}.json`)
  writeFileSync(
    report,
    JSON.stringify({
      success,
      testResults: files.map(([status, ...tests]) => ({
        status,
        assertionResults: tests.map((each) => ({ status: each }))
      }))
    })
  )
  return report
}
const summaryOf = (...paths: string[]): string =>
  execFileSync(process.execPath, [script, ...paths], { encoding: 'utf8' }).trimEnd()
const lastLine = (text: string): string => text.slice(text.lastIndexOf('\n') + 1)
const summary = (success: boolean, ...files: File[]): string => lastLine(summaryOf(reportOf(success, ...files)))

test('counts tests', () => {
  expect(summary(true, ['passed', 'passed', 'skipped'], ['passed', 'passed'])).toBe('2 passed, 0 failed, 1 skipped')
  expect(summary(false, ['failed', 'passed', 'failed'], ['passed', 'pending'])).toBe('1 passed, 1 failed, 1 skipped')
})

test('a file that fails without a failed test is a failure', () => {
  expect(summary(false, ['failed'], ['passed', 'passed'])).toBe('1 passed, 1 failed, 0 skipped')
  expect(summary(false, ['failed', 'skipped', 'passed'])).toBe('1 passed, 1 failed, 1 skipped')
})

test('a run that fails without a failed file is a failure', () => {
  expect(summary(false, ['passed', 'passed'])).toBe('1 passed, 1 failed, 0 skipped')
})

test('reports are added up, and each failed run counts', () => {
  const good = reportOf(true, ['passed', 'passed', 'skipped'])
  expect(summaryOf(good, good)).toBe('2 passed, 0 failed, 2 skipped')
  expect(lastLine(summaryOf(reportOf(true, ['passed', 'passed']), reportOf(false, ['passed', 'passed'])))).toBe(
    '2 passed, 1 failed, 0 skipped'
  )
  expect(lastLine(summaryOf(reportOf(false, ['failed', 'failed']), reportOf(false, ['passed', 'passed'])))).toBe(
    '1 passed, 2 failed, 0 skipped'
  )
})

test('failures are listed before the count, each with the start of its message', () => {
  const report = join(scratch, 'named.json')
  const message = [
    '\u001b[31mAssertionError: 1 is not 2\u001b[39m',
    ...Array.from({ length: 40 }, (_, at) => `  at ${at}`)
  ]
  const testResults = [
    {
      name: join(process.cwd(), 'packages/a/test/one.test.ts'),
      status: 'failed',
      assertionResults: [
        { status: 'passed', fullName: 'a good one', failureMessages: [] },
        { status: 'failed', fullName: 'numbers are counted', failureMessages: [message.join('\n')] }
      ]
    },
    { name: join(process.cwd(), 'two.test.ts'), status: 'failed', message: 'no such module', assertionResults: [] }
  ]
  writeFileSync(report, JSON.stringify({ success: false, testResults }))
  const lines = summaryOf(report).split('\n')
  expect(lines.slice(0, 3)).toEqual([
    'FAILED packages/a/test/one.test.ts: numbers are counted',
    '  AssertionError: 1 is not 2',
    '    at 0'
  ])
  expect(lines.slice(-3)).toEqual([
    'FAILED two.test.ts: outside its tests',
    '  no such module',
    '1 passed, 2 failed, 0 skipped'
  ])
  expect(lines).toHaveLength(1 + 12 + 2 + 1)
})
