import { parseArgs } from 'node:util'
import { CommanderError } from 'commander'
import { ChildEnded, usage } from './errors.ts'
import { EXIT } from './exit-codes.ts'
import { answerToOthers } from './program/words-of-others.ts'
import { buildProgram } from './program.ts'
import { reportOf, tellReport } from './report.ts'
import { openSession } from './session.ts'
import type { Terminal } from './terminal.ts'
import { tellVersions, VersionAsked } from './versions.ts'

/**
 * Runs one command line, the words after `svc`, and returns its exit code: one of `EXIT`, or that of the command run by
 * `svc exec`. Errors are printed on stderr, never thrown. `signal` is aborted on Ctrl-C.
 */
export async function run(
  words: readonly string[],
  version: string,
  terminal: Terminal,
  signal: AbortSignal
): Promise<number> {
  // determined before parsing, since the parser may be what fails.
  const end = words.indexOf('--')
  const json = words.slice(0, end < 0 ? words.length : end).includes('--json')
  const tell = (error: unknown): number => {
    const report = reportOf(error)
    tellReport(report, json, terminal.stderr)
    return EXIT[report.exit]
  }
  const answer = answerToOthers(words)
  if (answer !== undefined) return tell(answer)
  try {
    await buildProgram(version, terminal, signal, json).parseAsync([...words], { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof ChildEnded) return error.exitCode
    if (error instanceof VersionAsked) {
      // the parser stopped at this option, whatever follows it
      const { socket } = parseArgs({ args: [...words], options: { socket: { type: 'string' } }, strict: false }).values
      await tellVersions(openSession({ json, socket: socket as string }, version, terminal, signal))
      return EXIT.ok
    }
    if (!(error instanceof CommanderError)) return tell(error)
    if (error.exitCode === 0) return EXIT.ok
    return json ? tell(usage(parserMessage(error))) : EXIT.usage
  }
}

/** A command group without a command fails with its help text, which is not a message. */
const parserMessage = ({ code, message }: CommanderError): string =>
  code === 'commander.help' ? 'a command is missing; svc --help lists them' : message.replace(/^error: /, '')
