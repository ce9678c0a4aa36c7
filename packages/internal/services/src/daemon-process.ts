import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { defaultSocketPath } from '@svc/client/protocol'

/** A daemon older than this is not starting: it has lost its socket, or it hangs. */
const YOUNG_SECONDS = 60
/** `USER_HZ`, the unit of times in /proc, whatever the kernel's own clock is. */
const TICKS_PER_SECOND = 100
/** Interpreters of the program's scripts: the shell of `bin/svcd`, then Node. */
const INTERPRETERS: ReadonlySet<string> = new Set(['sh', 'dash', 'bash', 'ash', 'busybox', 'env', 'node'])
const PROGRAMS: ReadonlySet<string> = new Set(['svcd', 'svcd.cjs'])
const VALUED: ReadonlySet<string> = new Set(['--root', '--config', '--socket', '--log-level', '--log-format'])
/** Flags with which `svcd` does not serve. */
const NO_DAEMON: ReadonlySet<string> = new Set(['--check', '--help', '-h', '--version', '-V'])

/**
 * Whether a daemon of this user was just started for the socket: until it has loaded its modules, only the process
 * table shows it. Call this if nothing answers on the socket. Always false on systems without /proc.
 */
export function isDaemonProcessStarting(socketPath: string): boolean {
  const user = process.geteuid?.()
  if (process.platform !== 'linux' || user === undefined) return false
  const wanted = resolve(socketPath)
  return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && isStarting(`/proc/${pid}`, wanted, user))
}

/** Whether a process of this machine is a daemon; undefined on systems without /proc. */
export function isDaemonProcess(pid: number): boolean | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    return daemonArguments(nulEnded(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) !== undefined
  } catch {
    return false
  }
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
    // the program's name is in parentheses, and may contain anything
    const startedTicks = Number(readFileSync(`${folder}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[19])
    const upSeconds = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'))
    return upSeconds - startedTicks / TICKS_PER_SECOND < YOUNG_SECONDS
  } catch {
    // it has ended in the meantime, or belongs to somebody else
    return false
  }
}

const nulEnded = (text: string): string[] => text.split('\0').slice(0, -1)

/** The arguments after the program's name; undefined if the command line is that of another program. */
function daemonArguments(words: readonly string[]): readonly string[] | undefined {
  const at = words.findIndex((word) => PROGRAMS.has(basename(word)))
  const before = words.slice(0, Math.max(at, 0))
  const isProgram = before.every((word) => word.startsWith('-') || INTERPRETERS.has(basename(word)))
  return at < 0 || !isProgram ? undefined : words.slice(at + 1)
}

/** The socket that a process with this command line serves, as written there; undefined if it serves none. */
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
    // a word that is not a flag is a command, such as "move", which does not serve
    if (NO_DAEMON.has(flag) || !flag.startsWith('-')) return undefined
    const given = VALUED.has(flag) ? (value ?? args[++i]) : undefined
    if (flag === '--socket') socket = given
  }
  return socket ?? defaultSocketPath(env, user)
}
