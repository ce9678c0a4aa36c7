import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { defaultSocketPath } from '@svc/client/protocol'

/** A daemon that is older than this is not starting: it has lost its socket, or it hangs. */
const YOUNG_SECONDS = 60
/** `USER_HZ`, the unit of times in /proc, whatever the kernel's own clock is. */
const TICKS_PER_SECOND = 100
/** What runs a program that is a script: the shell of `bin/svcd`, then Node. */
const INTERPRETERS: ReadonlySet<string> = new Set(['sh', 'dash', 'bash', 'ash', 'busybox', 'env', 'node'])
const PROGRAMS: ReadonlySet<string> = new Set(['svcd', 'svcd.cjs'])
const VALUED: ReadonlySet<string> = new Set(['--root', '--config', '--socket', '--log-level', '--log-format'])
/** Calls that serve nothing. */
const NO_DAEMON: ReadonlySet<string> = new Set(['--check', '--help', '-h', '--version', '-V'])

/**
 * Whether a daemon of this user was started for the socket a moment ago: from when the program was called until it has loaded its modules
 * only the table of processes shows it. To be asked where nothing answers. Always false on systems without /proc.
 */
export function isDaemonProcessStarting(socketPath: string): boolean {
  const user = process.geteuid?.()
  if (process.platform !== 'linux' || user === undefined) return false
  const wanted = resolve(socketPath)
  return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && isStarting(`/proc/${pid}`, wanted, user))
}

function isStarting(folder: string, socketPath: string, user: number): boolean {
  try {
    if (statSync(folder).uid !== user) return false
    const words = nulEnded(readFileSync(`${folder}/cmdline`, 'utf8'))
    if (daemonArguments(words) === undefined) return false
    const env = Object.fromEntries(
      nulEnded(readFileSync(`${folder}/environ`, 'utf8')).map((line) => line.split(/=(.*)/s, 2))
    )
    const socket = socketServed(words, env, user)
    if (socket === undefined || resolve(readlinkSync(`${folder}/cwd`), socket) !== socketPath) return false
    // the name of the program stands in brackets, and may hold anything
    const startedTicks = Number(readFileSync(`${folder}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[19])
    const upSeconds = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'))
    return upSeconds - startedTicks / TICKS_PER_SECOND < YOUNG_SECONDS
  } catch {
    // it has ended meanwhile, or it is somebody else's
    return false
  }
}

const nulEnded = (text: string): string[] => text.split('\0').slice(0, -1)

/** What follows the program's name on a command line; undefined for one of another program. */
function daemonArguments(words: readonly string[]): readonly string[] | undefined {
  const at = words.findIndex((word) => PROGRAMS.has(basename(word)))
  const before = words.slice(0, Math.max(at, 0))
  const isProgram = before.every((word) => word.startsWith('-') || INTERPRETERS.has(basename(word)))
  return at < 0 || !isProgram ? undefined : words.slice(at + 1)
}

/** The socket that a process with this command line serves, as it was written there; undefined for one that serves none. */
export function socketServed(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  user: number
): string | undefined {
  const args = daemonArguments(words)
  if (args === undefined) return undefined
  let socket: string | undefined
  for (let i = 0; i < args.length; i++) {
    const [flag = '', value] = args[i]!.split(/=(.*)/s, 2)
    // a word that is no flag is a command, such as "move": it serves nothing
    if (NO_DAEMON.has(flag) || !flag.startsWith('-')) return undefined
    const given = VALUED.has(flag) ? (value ?? args[++i]) : undefined
    if (flag === '--socket') socket = given
  }
  return socket ?? defaultSocketPath(env, user)
}
