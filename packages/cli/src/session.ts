import { type Client, createClient } from '@svc/client'
import { jsonText, printable } from './printable.ts'
import { installedAgentSocket } from './service/agent.ts'
import type { Terminal } from './terminal.ts'
import { sayingWhatIsHere } from './unknown-here.ts'

/** Options that every command has. */
export interface CommonOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  readonly socket?: string
}

/** What a command works with: the client and the ways to say something. */
export interface Session {
  readonly client: Client
  readonly terminal: Terminal
  readonly json: boolean
  readonly quiet: boolean
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal
  /** A line of the result, on stdout. */
  print(line?: string): void
  /** A remark beside the result, on stderr; not with --quiet or --json. */
  note(line: string): void
  /** The machine-readable result: one line of JSON on stdout. */
  document(value: unknown): void
}

export function openSession(options: CommonOptions, terminal: Terminal, signal: AbortSignal): Session {
  const { stdout, stderr, env } = terminal
  const json = options.json === true
  const quiet = options.quiet === true
  return {
    client: sayingWhatIsHere(createClient({ signal, socketPath: options.socket ?? installedAgentSocket(env), env })),
    terminal,
    json,
    quiet,
    signal,
    print: (line = '') => void stdout.write(`${printable(line)}\n`),
    note: (line) => {
      if (!json && !quiet) stderr.write(`${printable(line)}\n`)
    },
    document: (value) => void stdout.write(`${jsonText(value)}\n`)
  }
}
