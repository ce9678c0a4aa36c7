// Prints "N passed, N failed, N skipped" from vitest's JSON report: `node scripts/test-summary.ts <report.json> [<again.json>]`.
// A file that fails outside its tests (an import, a hook) counts as one failure. The second report is of the failed files,
// run once more: its files take the place of theirs. `--failed <report.json>` prints the failed files instead, one a line.
import { readFileSync } from 'node:fs'

interface Report {
  readonly success: boolean
  readonly testResults: readonly {
    readonly name?: string
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const read = (path: string): Report => JSON.parse(readFileSync(path, 'utf8')) as Report

/** The first run, with the files that were run again as they came out then. */
function merged(first: Report, again: Report): Report {
  const names = new Set(again.testResults.map(({ name }) => name))
  const kept = first.testResults.filter(({ name }) => !names.has(name))
  const ok = again.success && kept.every(({ status }) => status !== 'failed')
  return { success: ok, testResults: [...kept, ...again.testResults] }
}

const onlyFailed = process.argv[2] === '--failed'
const [path, again] = process.argv.slice(onlyFailed ? 3 : 2)
if (path === undefined) throw new Error('usage: node scripts/test-summary.ts [--failed] <report.json> [<again.json>]')
const report = again === undefined ? read(path) : merged(read(path), read(again))
if (onlyFailed) {
  for (const { status, name } of report.testResults) if (status === 'failed' && name !== undefined) console.log(name)
  process.exit(0)
}
const count = { passed: 0, failed: 0, skipped: 0 }
for (const file of report.testResults) {
  for (const { status } of file.assertionResults) {
    if (status === 'passed' || status === 'failed') count[status]++
    else count.skipped++
  }
  if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) count.failed++
}
// An error outside all files (an unhandled rejection) leaves no other trace in the report.
if (!report.success && count.failed === 0) count.failed = 1
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
