import { parseArgs } from 'node:util'
import { StartError } from '../errors.ts'
import type { LogLevel } from '../log.ts'

export interface Flags {
  readonly root: string | undefined
  readonly config: string | undefined
  readonly socket: string | undefined
  /** `undefined` leaves the choice to the configuration. */
  readonly noSeedVerify: boolean | undefined
  readonly logLevel: LogLevel
  readonly help: boolean
  readonly version: boolean
  /** What follows the flags, such as `tag set …`. */
  readonly words: readonly string[]
}

export const HELP = `svcd: the local model store daemon

  svcd [flags]                              serve the API on a Unix socket, in the foreground
  svcd tag set NS/NAME:TAG [sha256:<hex>]   name the current index (or that one)
  svcd tag rm NS/NAME:TAG
  svcd tag ls [NS/NAME]

flags
  --root FOLDER       the store (else SVC_ROOT, [store] root, $XDG_DATA_HOME/svc)
  --config FILE       configuration (else SVC_CONFIG, $XDG_CONFIG_HOME/svc/config.toml)
  --socket PATH       where to listen (else SVC_SOCKET, $XDG_RUNTIME_DIR/svc-<uid>/svc.sock)
  --no-seed-verify    do not hash the store again before seeding; unsafe
  --log-level LEVEL   debug, info, warn, error or silent (default info)
  --version, --help

exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or configuration
`

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

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
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'V' }
      }
    })
  } catch (cause) {
    throw new StartError(`${(cause as Error).message.split('\n')[0]}\ntry: svcd --help`, { cause })
  }
  const { values, positionals } = parsed
  for (const name of ['root', 'config', 'socket'] as const) {
    if (values[name] === '') throw new StartError(`--${name} must not be empty`)
  }
  const logLevel = (values['log-level'] ?? 'info') as LogLevel
  if (!LEVELS.includes(logLevel)) throw new StartError(`--log-level must be one of ${LEVELS.join(', ')}`)
  return {
    root: values.root,
    config: values.config,
    socket: values.socket,
    noSeedVerify: values['no-seed-verify'],
    logLevel,
    help: values.help ?? false,
    version: values.version ?? false,
    words: positionals
  }
}
