import { type Command, Option } from 'commander'
import { MANAGERS } from '../service/manager.ts'
import { type CommandTools, DAEMON } from './tools.ts'

/** `svc service` and its commands. */
export function addServiceCommands({ add, group, runAtOnce }: CommandTools): void {
  const services = group('service', 'run the daemon as a service of this user')
  const service = (name: string, description: string): Command =>
    add(name, description, services).addOption(
      new Option('--manager <name>', 'default: the service manager of this system').choices(MANAGERS)
    )
  service('install', 'start the daemon now, and automatically from now on')
    .addOption(DAEMON)
    .option('--dry-run', 'only show what would be written and run')
    .action(runAtOnce(() => import('../commands/service.ts').then(({ install }) => install)))
  service('remove', 'remove the service; keep the store and the configuration')
    .option('--dry-run', 'only show what would be removed and run')
    .action(runAtOnce(() => import('../commands/service.ts').then(({ remove }) => remove)))
  service('status', 'show whether the service is installed, runs and answers').action(
    runAtOnce(() => import('../commands/service.ts').then(({ serviceStatus }) => serviceStatus))
  )
}
