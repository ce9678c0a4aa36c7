import { type Client, createClient } from '@svc/client'
import { isDefaultSocket } from '@svc/client/protocol'
import { type Clock, systemClock } from '@svc/internal-clock'
import { installedAgentSocket } from '@svc/internal-services'
import { sayingWhatIsHere } from './models/unknown-here.ts'
import type { Terminal } from './terminal.ts'

export interface CommonOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  readonly inProcess?: boolean
  readonly socket?: string
}

/** The surroundings of a command: the client, and the ways to print. */
export interface Session {
  readonly client: Client
  /** Whether an option or a variable names the socket, which may be another user's or container's. */
  readonly isSocketNamed: boolean
  readonly terminal: Terminal
  readonly clock: Clock
  /** That of this `svc`. */
  readonly version: string
  readonly json: boolean
  readonly quiet: boolean
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal
  /** Prints a line of the result on stdout. */
  print(line?: string): void
  /** Prints rows as aligned columns on stdout. */
  table(rows: readonly (readonly string[])[]): void
  /** Prints a remark on stderr; not with --quiet or --json. */
  note(line: string): void
  /** Prints the machine-readable result, one line of JSON, on stdout. */
  document(value: unknown): void
}

export function openSession(options: CommonOptions, version: string, terminal: Terminal, signal: AbortSignal): Session {
  const { stdout, stderr, env, clock = systemClock } = terminal
  const json = options.json === true
  const quiet = options.quiet === true
  return {
    client: sayingWhatIsHere(createClient({ signal, socketPath: options.socket ?? installedAgentSocket(env), env })),
    isSocketNamed: options.socket !== undefined || !isDefaultSocket(env),
    terminal,
    clock,
    version,
    json,
    quiet,
    signal,
    print: (line) => stdout.line(line),
    table: (rows) => stdout.table(rows),
    note: (line) => {
      if (!json && !quiet) stderr.prose(line)
    },
    document: (value) => stdout.document(value)
  }
}
