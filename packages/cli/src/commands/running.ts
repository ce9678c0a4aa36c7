import { daemonState, isDaemonProcess, takeStep } from '@svc/internal-services'
import type { Command } from 'commander'
import { CliError, usage } from '../errors.ts'
import { count } from '../format.ts'
import { startDaemon } from '../service/background.ts'
import { daemonCommand } from '../service/daemon-command.ts'
import { installedManager } from '../service/installed-manager.ts'
import type { Session } from '../session.ts'
import { runningVersion } from '../versions.ts'
import { runToItsEnd } from './exec.ts'

export interface RunningOptions {
  readonly svcd?: string
}

/** Longest wait until a daemon has ended: it aborts its jobs, and lets answers finish. */
const STOP_MS = 60_000
const LOOK_EVERY_MS = 50

/** `svc start`: through the service where one is set up, else in the background. */
export async function start(session: Session, { svcd }: RunningOptions): Promise<void> {
  if (await isRunning(session)) {
    const { pid } = await session.client.status()
    if (session.json) return session.document({ pid, started: false })
    return session.print(`svcd runs already, pid ${pid}`)
  }
  tellStarted(session, await startDaemon(session, svcd), (await session.client.status()).pid)
}

function tellStarted(session: Session, said: string | undefined, pid: number): void {
  if (session.json) return session.document({ pid, started: said !== undefined })
  session.print(said ?? `another command started the daemon svcd (pid ${pid})`)
}

/** `svc stop`: ends the daemon, however it was started. */
export async function stop(session: Session, _: unknown, { args: [model] }: Command): Promise<void> {
  if (model !== undefined)
    throw usage(
      `svc stop ends the daemon, and "${model}" is none`,
      'svc ps shows which programs have a model loaded; end the program itself'
    )
  const pid = await stopDaemon(session)
  if (session.json) return session.document({ pid: pid ?? null, stopped: pid !== undefined })
  session.print(pid === undefined ? 'no daemon is running' : `stopped the daemon svcd (pid ${pid})`)
}

/** `svc restart` */
export async function restart(session: Session, { svcd }: RunningOptions): Promise<void> {
  const before = (await isRunning(session)) ? (await session.client.status()).root : undefined
  await stopDaemon(session)
  const said = await startDaemon(session, svcd)
  const { pid, root } = await session.client.status()
  if (before !== undefined && before !== root)
    session.note(`careful: it had the store ${before}, and has ${root} now, as the configuration says`)
  tellStarted(session, said, pid)
}

/** `svc serve`: the daemon in the foreground. @throws ChildEnded with its exit code */
export async function serve({ client, isSocketNamed, terminal }: Session, { svcd }: RunningOptions): Promise<never> {
  const command = daemonCommand(svcd, terminal.env)
  return runToItsEnd(terminal, [...command, ...(isSocketNamed ? ['--socket', client.socketPath] : [])])
}

const isRunning = async ({ client, signal }: Session): Promise<boolean> =>
  (await runningVersion(client.socketPath, signal)) !== undefined

/** @returns its process id; undefined if none ran. @throws CliError */
async function stopDaemon(session: Session): Promise<number | undefined> {
  const { client, clock, signal, terminal } = session
  const manager = session.isSocketNamed ? undefined : installedManager(terminal.env)
  const isOfManager = manager?.state().active === true
  if (!isOfManager && !(await isRunning(session))) return undefined
  const { pid, jobs } = await client.status()
  if (isOfManager) for (const step of manager.stop) takeStep(step, terminal.env as NodeJS.ProcessEnv)
  else endProcess(pid)
  const begun = clock.monotonic()
  while (isAlive(pid) || (await daemonState(client.socketPath, clock.now())).state === 'starting') {
    if (clock.monotonic() - begun > STOP_MS)
      throw new CliError('failed', `the daemon (pid ${pid}) has not ended after ${STOP_MS / 1000} s`, {
        hint: `kill -9 ${pid} ends it at once; nothing verified is lost`
      })
    await clock.sleep(LOOK_EVERY_MS, signal)
  }
  const cut = jobs.fetching + jobs.waiting
  if (cut > 0) session.note(`${count(cut, 'job')} ended with it; what they verified is kept`)
  return pid
}

/** @throws CliError for a process that is not the daemon here, but has its number: that of another container */
function endProcess(pid: number): void {
  const hint = 'stop it where it was started'
  if (isDaemonProcess(pid) === false)
    throw new CliError('failed', `the daemon runs elsewhere: process ${pid} here is another program`, { hint })
  try {
    process.kill(pid, 'SIGTERM')
  } catch (cause) {
    throw new CliError('failed', `the daemon (pid ${pid}) cannot be ended from here`, { hint, cause })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
