import { homedir } from 'node:os'
import { join } from 'node:path'
import { launchd, type ManagerName, type ServiceManager, systemd } from '@svc/internal-services'
import { usage } from '../errors.ts'
import type { Terminal } from '../terminal.ts'
import { clientCommand, packageFolder } from './daemon-command.ts'

/** The service manager of this system, or the named one. `command` starts the daemon. @throws CliError, ServiceError */
export function serviceManager(
  { env: given }: Pick<Terminal, 'env'>,
  command: readonly string[],
  name: ManagerName = process.platform === 'darwin' ? 'launchd' : 'systemd'
): ServiceManager {
  const env = given as NodeJS.ProcessEnv
  const home = env.HOME?.startsWith('/') === true ? env.HOME : homedir()
  const uid = process.getuid?.()
  if (uid === undefined) throw usage('this system has no user ids: services are for Linux and macOS')
  return name === 'launchd'
    ? launchd(command, home, uid, env)
    : systemd(command, clientCommand(), home, env, join(packageFolder(), 'units'))
}

/** The manager under which the daemon of this user is set up; undefined if it is not. */
export function installedManager(env: Terminal['env']): ServiceManager | undefined {
  const manager = serviceManager({ env }, ['svcd'])
  const { installed, enabled } = manager.state()
  return installed && enabled ? manager : undefined
}
