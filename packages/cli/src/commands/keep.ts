import { Argument, type Command, Option } from 'commander'
import { type CommandTools, DAEMON } from '../command-tools.ts'
import { SHELLS } from '../completion/scripts.ts'
import { MANAGERS } from '../service/manager.ts'

function addServiceCommands({ add, group, run }: CommandTools): void {
  const services = group('service', 'run the daemon as a service of this user')
  const service = (name: string, description: string): Command =>
    add(services, name, description).addOption(
      new Option('--manager <name>', 'default: the service manager of this system').choices(MANAGERS)
    )
  service('install', 'start the daemon now, and automatically from now on')
    .addOption(DAEMON)
    .option('--dry-run', 'only show what would be written and run')
    .action(run(() => import('./service.ts').then(({ install }) => install)))
  service('remove', 'remove the service; keep the store and the configuration')
    .option('--dry-run', 'only show what would be removed and run')
    .action(run(() => import('./service.ts').then(({ remove }) => remove)))
  service('status', 'show whether the service is installed, runs and answers').action(
    run(() => import('./service.ts').then(({ serviceStatus }) => serviceStatus))
  )
}

function addLookingCommands(program: Command, version: string, { add, run }: Pick<CommandTools, 'add' | 'run'>): void {
  add(program, 'doctor', 'check everything that the store depends on, and suggest fixes').action(
    run(() =>
      import('./doctor.ts').then(
        ({ doctor }) =>
          (session) =>
            doctor(session, version)
      )
    )
  )
  add(program, 'ui', 'show the models, jobs and peers in the browser, until Ctrl-C')
    .option('--no-open', 'only print the link')
    .option('--port <n>', 'default: any free port')
    .action(
      run(() =>
        import('./ui.ts').then(
          ({ ui }) =>
            (session, options) =>
              ui(session, version, options)
        )
      )
    )
}

/** The commands that install and maintain `svc`: `service`, `login`, `seed`, `move`, `backup`, `restore`, `doctor`, `ui`, `completion`. */
export function addKeepCommands(program: Command, version: string, { add, group, run }: CommandTools): void {
  addServiceCommands({ add, group, run })

  const hubs = ['hf'] as const
  add(program, 'login', 'store a token of the model hub, for gated and private repositories')
    .addArgument(new Argument('<hub>', 'which').choices(hubs))
    .action(run(() => import('./login.ts').then(({ login }) => login)))
  add(program, 'logout', 'remove the token of the model hub')
    .addArgument(new Argument('<hub>', 'which').choices(hubs))
    .action(run(() => import('./login.ts').then(({ logout }) => logout)))

  add(program, 'seed', 'show whether models are shared with others, or turn sharing on or off')
    .addArgument(new Argument('[switch]', 'at once, and in the configuration').choices(['on', 'off']))
    .addOption(DAEMON)
    .action(run(() => import('./seed.ts').then(({ seed }) => seed)))
  add(program, 'move <dir>', 'copy the store to another disk; the old one stays until you delete it')
    .addOption(DAEMON)
    .action(run(() => import('./move.ts').then(({ move }) => move)))
  const bucket = (command: Command): Command =>
    command
      .option('--endpoint <url>', 'address of an S3-compatible store')
      .option('--region <name>', 'region of the bucket')
  bucket(add(program, 'backup <dest>', 'copy the store to a folder or a bucket; a second run adds what is new'))
    .option('--verify', 'read existing files back, and replace damaged ones')
    .option('--prune', 'then remove older snapshots, and files that only they need')
    .action(run(() => import('./backup.ts').then(({ backup }) => backup)))
  bucket(add(program, 'restore <src>', 'restore a store from a backup into a new or empty folder'))
    .option('--root <dir>', 'the folder; default: the configured one')
    .option('--incomplete', 'continue without the damaged files of the backup')
    .addOption(DAEMON)
    .action(run(() => import('./backup.ts').then(({ restore }) => restore)))
  addLookingCommands(program, version, { add, run })
  add(program, 'completion', 'print a script for shell completion of commands and references')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action(run(() => import('./completion.ts').then(({ completion }) => completion)))
  // Hidden: only the completion scripts call it.
  program
    .command('__complete [words...]', { hidden: true })
    .allowUnknownOption()
    .action(
      run(() =>
        import('./completion.ts').then(
          ({ complete }) =>
            (session, words) =>
              complete(session, program, words)
        )
      )
    )
}
