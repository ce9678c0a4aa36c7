// What failed, named, and then "N passed, N failed, N skipped" of vitest's JSON reports together: `node scripts/test-summary.ts <report.json>…`.
// It stands at the end of a long log, of which often only the end is kept. A file that fails outside its tests (an import, a hook)
// counts as one failure.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

interface Report {
  readonly success: boolean
  readonly testResults: readonly {
    readonly name?: string
    readonly status: string
    readonly message?: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName?: string
      readonly failureMessages?: readonly string[]
    }[]
  }[]
}

/** Lines of a failure's message: what was expected, and where. */
const MESSAGE_LINES = 12

const paths = process.argv.slice(2)
if (paths.length === 0) throw new Error('usage: node scripts/test-summary.ts <report.json>…')
const count = { passed: 0, failed: 0, skipped: 0 }

function tellFailure(file: string | undefined, test: string, message = ''): void {
  count.failed++
  const lines = stripVTControlCharacters(message).split('\n').slice(0, MESSAGE_LINES)
  console.log(`FAILED ${file === undefined ? '' : `${relative(process.cwd(), file)}: `}${test}`)
  for (const line of lines) if (line.trim() !== '') console.log(`  ${line}`)
}

for (const path of paths) {
  const report = JSON.parse(readFileSync(path, 'utf8')) as Report
  const failedBefore = count.failed
  for (const file of report.testResults) {
    for (const { status, fullName = 'a test', failureMessages } of file.assertionResults) {
      if (status === 'passed') count.passed++
      else if (status === 'failed') tellFailure(file.name, fullName, failureMessages?.join('\n'))
      else count.skipped++
    }
    if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'))
      tellFailure(file.name, 'outside its tests', file.message)
  }
  // an error outside all files (an unhandled rejection) leaves no other trace in the report.
  if (!report.success && count.failed === failedBefore)
    tellFailure(undefined, 'an error outside all files, or a run that was ended: see "Unhandled" further up')
}
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
