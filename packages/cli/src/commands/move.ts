import { resolve } from 'node:path'
import { installedAgentSocket } from '@svc/internal-services'
import { CliError } from '../errors.ts'
import { runDaemonCommand } from '../service/daemon-run.ts'
import type { Session } from '../session.ts'
import { runningVersion } from '../versions.ts'

/** `svc move DIR` runs `svcd move DIR`. A running daemon may be fetching, so it is not stopped. @throws CliError */
export async function move(
  session: Session,
  dir: string,
  options: { readonly svcd?: string; readonly new?: boolean }
): Promise<void> {
  await refuseBesideDaemon(session)
  await runDaemonCommand(
    session,
    ['move', resolve(session.terminal.cwd, dir), ...(options.new === true ? ['--new'] : [])],
    {
      svcd: options.svcd,
      otherwise: 'the store was not moved; the old one stays in use'
    }
  )
}

async function refuseBesideDaemon({ client, terminal, signal }: Session): Promise<void> {
  const { socketPath } = client
  if ((await runningVersion(socketPath, signal)) === undefined) return
  const { pid } = await client.status()
  throw new CliError('failed', `the daemon is running (pid ${pid}) and uses the store: stop it first`, {
    hint:
      installedAgentSocket(terminal.env) === socketPath
        ? 'launchctl bootout gui/$(id -u)/io.svc.svcd'
        : `as a service: systemctl --user stop svcd.socket svcd.service; started by hand: kill ${pid}`
  })
}
