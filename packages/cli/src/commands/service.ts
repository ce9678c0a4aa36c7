import { describeStep, type ManagerName, type ServiceManager, type ServiceStep, takeStep } from '@svc/internal-services'
import { CliError } from '../errors.ts'
import { daemonCommand } from '../service/daemon-command.ts'
import { serviceManager } from '../service/installed-manager.ts'
import type { Session } from '../session.ts'
import { runningVersion } from '../versions.ts'

export interface ServiceOptions {
  readonly dryRun?: boolean
  readonly svcd?: string
  readonly manager?: ManagerName
}

/** `svc service install`: idempotent; prints each step. */
export async function install(session: Session, options: ServiceOptions): Promise<void> {
  const command = daemonCommand(options.svcd, session.terminal.env)
  const manager = serviceManager(session.terminal, command, options.manager)
  if (options.dryRun !== true && !manager.state().active) await refuseBesideAnother(session)
  const begun = manager.install.findIndex((step) => 'run' in step)
  carryOut(session, manager, manager.install.toSpliced(begun, 0, remember(command)), options)
  if (options.dryRun === true) return
  session.note(`svcd runs under ${manager.name} now, and starts automatically from now on`)
  session.note(
    'it shares public models with others over BitTorrent, unless [swarm] seed = false; svc seed off turns sharing off'
  )
  for (const remark of manager.remarks) session.note(remark)
}

/**
 * Has the store's id written into the configuration, before the service starts: it never makes a new store where this
 * one is not mounted. In the service's environment, which is not that of this shell.
 */
const remember = (command: readonly string[]): ServiceStep => ({
  run: ['env', '-u', 'SVC_ROOT', '-u', 'SVC_CONFIG', ...command, 'expect'],
  mayFail: true,
  otherwise: 'the service uses any store that it finds; to make it require this one: svcd expect'
})

/** A daemon that was started by hand holds the store and the socket: the service's daemon could not start. */
async function refuseBesideAnother({ client, signal }: Session): Promise<void> {
  if ((await runningVersion(client.socketPath, signal)) === undefined) return
  const { pid } = await client.status()
  throw new CliError(
    'failed',
    `a daemon that was started by hand is running (pid ${pid}), so the service cannot start`,
    {
      hint: 'stop it first: svc stop, or Ctrl-C in its terminal'
    }
  )
}

/** `svc service remove`: keeps the store and the configuration. */
export function remove(session: Session, options: ServiceOptions): void {
  const manager = serviceManager(session.terminal, ['svcd'], options.manager)
  carryOut(session, manager, manager.remove, options)
  if (options.dryRun !== true) session.note('the store and the configuration are unchanged')
}

/** `svc service status`. @throws CliError: exit code 3 when it is not installed, 1 when it is not running */
export async function serviceStatus(session: Session, options: ServiceOptions): Promise<void> {
  const manager = serviceManager(session.terminal, ['svcd'], options.manager)
  const state = manager.state()
  const { socketPath } = session.client
  const version = await runningVersion(socketPath, session.signal)
  if (session.json) session.document({ manager: manager.name, ...state, socket: socketPath, version: version ?? null })
  else {
    const rows = [
      ['manager', manager.name],
      ['installed', state.installed ? 'yes' : 'no'],
      ['starts automatically', state.enabled ? 'yes' : 'no'],
      ['runs', `${state.active ? 'yes' : 'no'} (${state.detail})`],
      ['answers', version === undefined ? `no, at ${socketPath}` : `svcd ${version} at ${socketPath}`]
    ]
    session.table(rows)
  }
  if (!state.installed)
    throw new CliError('notFound', 'svcd is not installed as a service', { hint: 'svc service install' })
  if (!state.active) throw new CliError('failed', 'the service is installed but not running', { hint: 'svc doctor' })
}

function carryOut(
  session: Session,
  manager: ServiceManager,
  steps: readonly ServiceStep[],
  { dryRun }: ServiceOptions
): void {
  const done: string[] = []
  const tell = (line: string): void => {
    done.push(line)
    if (!session.json && !session.quiet) session.print(line)
  }
  if (dryRun === true) {
    for (const step of steps) {
      tell(describeStep(step))
      if ('write' in step && !session.json && !session.quiet)
        for (const line of step.content.trimEnd().split('\n')) session.print(`    ${line}`)
    }
  } else {
    manager.check()
    for (const step of steps) tell(takeStep(step, session.terminal.env as NodeJS.ProcessEnv))
  }
  if (session.json) session.document({ manager: manager.name, dryRun: dryRun === true, steps: done })
}
