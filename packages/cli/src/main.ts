#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import { CliError } from './errors.ts'
import { EXIT } from './exit-codes.ts'
import { buildProgram } from './program.ts'
import { formatReport, reportOf } from './report.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

// A reader that has seen enough (`svc cat … | head`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed))
}

const interrupt = new AbortController()
process.on('SIGINT', () => {
  if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
  interrupt.abort(new CliError(EXIT.interrupted, 'interrupted', { code: 'E_INTERRUPTED' }))
})

let json = false
try {
  await buildProgram(version, interrupt.signal, () => (json = true)).parseAsync(process.argv)
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage
  } else {
    const report = reportOf(error)
    process.stderr.write(formatReport(report, json))
    process.exitCode = report.exitCode
  }
}
