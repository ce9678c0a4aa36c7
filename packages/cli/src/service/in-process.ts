import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { programInPath } from '@svc/internal-files'
import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'
import { awaitStart } from '../starting.ts'
import type { Terminal } from '../terminal.ts'
import { packageFolder } from './daemon-command.ts'

/** What is used of `@svc/daemon`, which is loaded for this alone. */
interface DaemonModule {
  startForCommand(
    socketPath: string,
    needs: { readonly findsPeers: boolean }
  ): Promise<{ close(options: { readonly quick: true }): Promise<void> }>
}

/** By default they end this process at once, and would leave the folder of the socket. */
const LEAVING = ['SIGTERM', 'SIGHUP'] as const

/**
 * Runs `work` with the daemon in this process, on a socket that nobody else may open. Where a daemon has the usual socket, or is about
 * to, `work` uses that one: it has the store. `open` makes the session of a socket; without an argument that of the usual one. @throws CliError
 */
export async function withDaemonInProcess(
  open: (socket?: string) => Session,
  work: (session: Session) => Promise<void>,
  needs: Parameters<DaemonModule['startForCommand']>[1]
): Promise<void> {
  const usual = open()
  const { terminal } = usual
  try {
    if ((await awaitStart(usual)) === 'answers') return await work(usual)
  } finally {
    usual.client.close()
  }
  // mode 0700
  const folder = mkdtempSync(join(tmpdir(), 'svc-'))
  const session = open(join(folder, 's.sock'))
  const leave = (signal: NodeJS.Signals): void => {
    // whoever else listens decides what becomes of the command: svc exec passes it on
    if (process.listenerCount(signal) > 1) return
    for (const each of LEAVING) process.off(each, leave)
    rmSync(folder, { recursive: true, force: true })
    process.kill(process.pid, signal)
  }
  for (const signal of LEAVING) process.on(signal, leave)
  try {
    const daemon = await startDaemon(session.client.socketPath, needs, terminal.env)
    try {
      await work(session)
    } finally {
      session.client.close()
      await daemon.close({ quick: true })
    }
  } finally {
    for (const signal of LEAVING) process.off(signal, leave)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startDaemon(
  socketPath: string,
  needs: Parameters<DaemonModule['startForCommand']>[1],
  env: Terminal['env']
) {
  const { startForCommand } = (await import(pathToFileURL(daemonEntry(env)).href)) as DaemonModule
  try {
    return await startForCommand(socketPath, needs)
  } catch (cause) {
    const { message, hint } = cause as Error & { readonly hint?: string }
    throw new CliError('unreachable', `the daemon did not start: ${message}`, { code: 'E_UNREACHABLE', hint, cause })
  }
}

/** Of the package beside this one, else of the `svcd` in PATH. @throws CliError */
function daemonEntry(env: Terminal['env']): string {
  const inPath = programInPath('svcd', env)
  const packages = [
    resolve(packageFolder(), '../daemon'),
    ...(inPath ? [resolve(dirname(realpathSync(inPath)), '..')] : [])
  ]
  const found = packages.map((folder) => join(folder, 'dist/index.js')).find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new CliError(
    'failed',
    '--in-process needs the package @svc/daemon, which is neither beside svc nor behind the svcd in PATH'
  )
}
