// Prints "N passed, N failed, N skipped" of vitest's JSON reports together: `node scripts/test-summary.ts <report.json>…`.
// A file that fails outside its tests (an import, a hook) counts as one failure.
import { readFileSync } from 'node:fs'

interface Report {
  readonly success: boolean
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

const paths = process.argv.slice(2)
if (paths.length === 0) throw new Error('usage: node scripts/test-summary.ts <report.json>…')
const count = { passed: 0, failed: 0, skipped: 0 }
for (const path of paths) {
  const report = JSON.parse(readFileSync(path, 'utf8')) as Report
  const failedBefore = count.failed
  for (const file of report.testResults) {
    for (const { status } of file.assertionResults) {
      if (status === 'passed' || status === 'failed') count[status]++
      else count.skipped++
    }
    if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) count.failed++
  }
  // An error outside all files (an unhandled rejection) leaves no other trace in the report.
  if (!report.success && count.failed === failedBefore) count.failed++
}
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
