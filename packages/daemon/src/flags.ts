import { parseArgs } from 'node:util'
import { StartError } from './errors.ts'
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from './log.ts'

export interface Flags {
  readonly root: string | undefined
  readonly config: string | undefined
  readonly socket: string | undefined
  /** `undefined`: the configuration decides. */
  readonly noSeedVerify: boolean | undefined
  readonly logLevel: LogLevel
  /** `undefined`: text if stderr is a terminal, else JSON. */
  readonly logFormat: LogFormat | undefined
  /** The root may hold another store than it had, or none: a start then makes one. */
  readonly new: boolean
  /** Read the configuration, print it, and exit. */
  readonly check: boolean
  /** `svcd move`, `svcd restore`, `svcd seed`: print the result as one line of JSON, and no progress. */
  readonly json: boolean
  /** `svcd restore`: continue without the damaged files of the backup. */
  readonly incomplete: boolean
  /** `svcd move`, `svcd restore`: print no progress; `svcd seed`: one word. */
  readonly quiet: boolean
  readonly help: boolean
  readonly version: boolean
  /** The words after the flags, such as `tag set …`. */
  readonly words: readonly string[]
}

/** The ways to call `svcd`, for the help and the man page. */
export const USAGE = [
  ['svcd [flags]', 'serve the API on a Unix socket, in the foreground'],
  ['svcd --check [flags]', 'check the configuration, print it, and exit'],
  ['svcd tag set NS/NAME:TAG [sha256:<hex>]', 'tag the current index, or the given one'],
  ['svcd tag rm NS/NAME:TAG', 'remove a tag'],
  ['svcd tag ls [NS/NAME]', 'list the tags'],
  ['svcd metrics', "print the running daemon's metrics, in Prometheus' text format"],
  ['svcd health | svcd ready', 'check that the daemon is alive, or ready; exit code 0 or 1'],
  ['svcd seed [on|off]', 'show whether models are shared, or turn sharing on or off from the next start'],
  ['svcd expect', "write the store's id into the configuration; the daemon then opens or creates no other store"],
  ['svcd restore SRC [--incomplete] [--json]', 'restore a backup of svc backup into an absent or empty root'],
  ['svcd move DIR [--json] [--quiet]', 'copy the store to another folder while no daemon runs; the old one stays']
] as const

/** The flags, for the help and the man page. */
export const FLAG_HELP = [
  ['--root FOLDER', 'root of the store (else SVC_ROOT, [store] root, $XDG_DATA_HOME/svc)'],
  ['--config FILE', 'configuration file (else SVC_CONFIG, $XDG_CONFIG_HOME/svc/config.toml)'],
  ['--socket PATH', 'socket to listen on (else SVC_SOCKET, $XDG_RUNTIME_DIR/svc-<uid>/svc.sock)'],
  ['--new', 'take the store that is there, or make one, in place of the one that the root had'],
  ['--no-seed-verify', 'seed without re-hashing the store; unsafe'],
  ['--log-level LEVEL', `${LOG_LEVELS.slice(0, -1).join(', ')} or ${LOG_LEVELS.at(-1)} (default info)`],
  ['--log-format FORMAT', `${LOG_FORMATS.join(' or ')} (default text on a terminal, json elsewhere)`],
  ['--check', 'check the configuration, print it, and exit'],
  ['-V, --version', 'print the version'],
  ['-h, --help', 'show help']
] as const

/** Exit codes of `svcd`, for the help and the man page. */
export const EXIT_HELP = [
  [0, 'done, stopped on request, or the configuration is valid'],
  [1, 'failed'],
  [2, 'wrong usage or configuration'],
  [5, 'the backup is damaged'],
  [130, 'a move or a restore was stopped; run it again to continue']
] as const

/** For errors of usage. */
export const SEE_HELP = { hint: 'svcd --help' } as const

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
}

export const HELP = `svcd: the local model store daemon

${columns(USAGE)}
flags
${columns(FLAG_HELP)}
exit codes: ${EXIT_HELP.map(([code, text]) => `${code} ${text}`).join('; ')}
`

/** @throws StartError naming the flag */
export function parseFlags(args: readonly string[]): Flags {
  let parsed
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      strict: true,
      options: {
        root: { type: 'string' },
        config: { type: 'string' },
        socket: { type: 'string' },
        'no-seed-verify': { type: 'boolean' },
        'log-level': { type: 'string' },
        'log-format': { type: 'string' },
        check: { type: 'boolean' },
        new: { type: 'boolean' },
        json: { type: 'boolean' },
        quiet: { type: 'boolean' },
        incomplete: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'V' }
      }
    })
  } catch (cause) {
    // the further sentences suggest other ways to write arguments
    const [what = ''] = (cause as Error).message.split(/\n|\. /)
    throw new StartError(`${what.charAt(0).toLowerCase()}${what.slice(1)}`, { ...SEE_HELP, cause })
  }
  const { values, positionals } = parsed
  for (const name of ['root', 'config', 'socket'] as const) {
    if (values[name] === '') throw new StartError(`--${name} must not be empty`)
  }
  const { check = false, json = false, quiet = false, incomplete = false, help = false, version = false } = values
  if (check && positionals.length > 0) throw new StartError('--check takes no command', SEE_HELP)
  for (const name of ['json', 'quiet'] as const) {
    if (values[name] && !['move', 'restore', 'seed'].includes(positionals[0] ?? ''))
      throw new StartError(`--${name} belongs to "svcd move", "svcd restore" and "svcd seed"`, SEE_HELP)
  }
  if (incomplete && positionals[0] !== 'restore')
    throw new StartError('--incomplete belongs to "svcd restore"', SEE_HELP)
  return {
    root: values.root,
    config: values.config,
    socket: values.socket,
    noSeedVerify: values['no-seed-verify'],
    logLevel: oneOf('--log-level', values['log-level'], LOG_LEVELS) ?? 'info',
    logFormat: oneOf('--log-format', values['log-format'], LOG_FORMATS),
    new: values.new ?? false,
    check,
    json,
    quiet,
    incomplete,
    help,
    version,
    words: positionals
  }
}

function oneOf<T extends string>(flag: string, value: string | undefined, known: readonly T[]): T | undefined {
  if (value === undefined || known.includes(value as T)) return value as T | undefined
  throw new StartError(`${flag} must be one of ${known.join(', ')}`)
}
