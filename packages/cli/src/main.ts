#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Output } from '@svc/internal-terminal'
import { CliError } from './errors.ts'
import { EXIT } from './exit-codes.ts'
import { run } from './run.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const [stdout, stderr] = [Output.stdout(), Output.stderr()]

// A reader that stops early (`svc cat … | head`) is not a failure.
for (const output of [stdout, stderr]) {
  output.onError((error) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok)
    const why = error.code === 'ENOSPC' ? 'no space is left there' : (error.code ?? error.message)
    if (output === stdout) stderr.line(`svc: the output cannot be written: ${why}`)
    process.exit(EXIT.failed)
  })
}
process.on('uncaughtException', (error) => {
  stderr.defect('svc', error)
  process.exit(EXIT.failed)
})

const interrupt = new AbortController()
process.on('SIGINT', () => {
  if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
  interrupt.abort(new CliError('interrupted', 'interrupted', { code: 'E_INTERRUPTED' }))
})

const { stdin, env } = process
const terminal = { stdin, stdout, stderr, env, cwd: process.cwd() }
process.exitCode = await run(process.argv.slice(2), version, terminal, interrupt.signal)
