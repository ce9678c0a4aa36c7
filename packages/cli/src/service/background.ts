import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeFoldersSync } from '@svc/internal-files'
import { daemonState, installedAgentSocket, ServiceError, takeStep } from '@svc/internal-services'
import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { stateFolder } from '../user-state.ts'
import { daemonCommand } from './daemon-command.ts'
import { installedManager } from './installed-manager.ts'

/** Longest wait until a daemon that was started answers. */
const TIMEOUT_MS = 120_000
const LOOK_EVERY_MS = 50
/** A longer log is put aside at the next start. */
const MAX_LOG_BYTES = 8 << 20
/** What is read of the log of a failed start. */
const TAIL_BYTES = 16 << 10

/** The log of a daemon in the background; undefined without a home. */
export function daemonLogPath(env: Terminal['env']): string | undefined {
  const folder = stateFolder(env)
  return folder === undefined ? undefined : join(folder, 'svcd.log')
}

/**
 * Starts the daemon of the session's socket, through the user's service where that is set up, else as a process of its
 * own, and waits until it answers. Of several callers at once one starts it. @returns what was started, for a person;
 * undefined if another caller did. @throws CliError with the reason from the log
 */
export async function startDaemon(session: Session, svcd?: string): Promise<string | undefined> {
  const { isSocketNamed, note, terminal } = session
  const manager = isSocketNamed ? undefined : installedManager(terminal.env)
  if (manager === undefined) return startInBackground(session, svcd)
  try {
    for (const step of manager.start) takeStep(step, terminal.env as NodeJS.ProcessEnv)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    // such as in a job of cron, which has no manager
    note(`the service cannot be started from here: ${error.message}`)
    return startInBackground(session, svcd)
  }
  if (await isAnsweredSoon(session)) return `started the service svcd of ${manager.name}; svc stop ends it`
  throw new CliError('unreachable', 'the service was started, and does not answer', { hint: 'svc doctor' })
}

/** Starts the program, and waits until it, or another one, answers on the session's socket. @throws CliError */
async function startInBackground(session: Session, svcd: string | undefined): Promise<string | undefined> {
  const { env } = session.terminal
  const isElsewhere = session.isSocketNamed || installedAgentSocket(env) !== undefined
  const [program, ...args] = daemonCommand(svcd, env)
  const log = openLog(daemonLogPath(env))
  const words = ['--log-format', 'text', ...(isElsewhere ? ['--socket', session.client.socketPath] : [])]
  const child = spawn(program!, [...args, ...words], {
    // Ctrl-C at this terminal is not for it
    detached: true,
    // where nothing is unmounted or removed
    cwd: homedir(),
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', log?.fd ?? 'ignore', log?.fd ?? 'ignore']
  })
  if (log !== undefined) closeSync(log.fd)
  let ended: string | undefined
  child.once('error', ({ message }) => (ended = message))
  child.once('exit', (code, signal) => (ended ??= `it ended with ${code ?? signal}`))
  const end = (): 'itself' | 'for another' | undefined => {
    if (ended === undefined) return undefined
    return OF_ANOTHER.test((log && lastError(log)?.message) ?? '') ? 'for another' : 'itself'
  }
  if (!(await isAnsweredSoon(session, end))) {
    const said = log && lastError(log)
    throw new CliError('unreachable', `the daemon did not start: ${said?.message ?? ended ?? 'it does not answer'}`, {
      code: 'E_UNREACHABLE',
      hint: said?.advice ?? (log === undefined ? 'svcd shows why' : `its log: ${log.path}`)
    })
  }
  child.unref()
  const { pid } = await session.client.status()
  if (pid !== child.pid) return undefined
  return `started the daemon svcd (pid ${pid}${log === undefined ? '' : `, log ${log.path}`}); svc stop ends it`
}

/** What a daemon says that ends since another one starts or runs. */
const OF_ANOTHER = /^already (?:starting|running)|is using this store/
/** How long the other one may take until it shows that it starts. */
const OTHER_MS = 5_000

/** @returns false as soon as there is none to wait for, if `endOf` says that of ours, or after a long time */
async function isAnsweredSoon(
  session: Session,
  endOf: () => 'itself' | 'for another' | undefined = () => undefined
): Promise<boolean> {
  const { client, clock, signal } = session
  const begun = clock.monotonic()
  let endedAt: number | undefined
  while (clock.monotonic() - begun < TIMEOUT_MS) {
    // asked first: of two that start at once one ends, and the other is on its way
    const end = endOf()
    if (end !== undefined) endedAt ??= clock.monotonic()
    const { state } = await daemonState(client.socketPath, clock.now())
    if (state === 'answers') return true
    if (state === 'absent' && (end === 'itself' || clock.monotonic() - (endedAt ?? Infinity) > OTHER_MS)) return false
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
  return false
}

interface DaemonLog {
  readonly path: string
  readonly fd: number
  /** Its length before the start. */
  readonly lengthBytes: number
}

function openLog(path: string | undefined): DaemonLog | undefined {
  if (path === undefined) return undefined
  makeFoldersSync(dirname(path))
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
  return { path, fd: openSync(path, 'a', 0o600), lengthBytes: statSync(path).size }
}

function lastError({
  path,
  lengthBytes
}: DaemonLog): { readonly message: string; readonly advice?: string } | undefined {
  const lines = readFileSync(path).subarray(lengthBytes).subarray(-TAIL_BYTES).toString('utf8').split('\n')
  const at = lines.findLastIndex((line) => line.startsWith('svcd: '))
  if (at < 0) return undefined
  const [, advice] = /^try: (.*)/.exec(lines[at + 1] ?? '') ?? []
  return { message: lines[at]!.slice('svcd: '.length), ...(advice !== undefined && { advice }) }
}
