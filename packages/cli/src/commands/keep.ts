import { Argument, type Command, Option } from 'commander'
import { SHELLS, type Shell } from '../completion/scripts.ts'
import { MANAGERS } from '../service/manager.ts'
import type { Session } from '../session.ts'

/** The tools that `program.ts` passes to each command: common options, and the session to run in. */
export interface CommandTools {
  add(parent: Command, nameAndArgs: string, description: string): Command
  group(name: string, description: string): Command
  run(command: Command, work: (session: Session) => Promise<void>): Promise<void>
}

function addServiceCommands({ add, group, run }: CommandTools): void {
  const services = group('service', 'run the daemon as a service of this user')
  const service = (name: string, description: string): Command =>
    add(services, name, description).addOption(
      new Option('--manager <name>', 'default: the one of this system').choices(MANAGERS)
    )
  service('install', 'start the daemon now, and automatically from now on')
    .option('--svcd <program>', 'the daemon; default: the one that came with this svc')
    .option('--dry-run', 'only show what would be written and run')
    .action(async (options, command: Command) =>
      run(command, async (session) => (await import('./service.ts')).install(session, options))
    )
  service('remove', 'undo that; the store and the configuration stay')
    .option('--dry-run', 'only show what would be removed and run')
    .action(async (options, command: Command) =>
      run(command, async (session) => (await import('./service.ts')).remove(session, options))
    )
  service('status', 'whether it is installed, runs and answers').action(async (options, command: Command) =>
    run(command, async (session) => (await import('./service.ts')).serviceStatus(session, options))
  )
}

/** The commands that install and maintain `svc`: `service`, `login`, `seed`, `move`, `backup`, `restore`, `doctor`, `completion`. */
export function addKeepCommands(program: Command, version: string, { add, group, run }: CommandTools): void {
  addServiceCommands({ add, group, run })

  const hubs = ['hf'] as const
  add(program, 'login', 'store a token of the model hub, for gated and private repositories')
    .addArgument(new Argument('<hub>', 'which').choices(hubs))
    .action(async (_hub, _options, command: Command) =>
      run(command, async (session) => (await import('./login.ts')).login(session))
    )
  add(program, 'logout', 'remove that token')
    .addArgument(new Argument('<hub>', 'which').choices(hubs))
    .action(async (_hub, _options, command: Command) =>
      run(command, async (session) => (await import('./login.ts')).logout(session))
    )

  add(program, 'seed', 'tell whether models are shared with others, or turn that on or off')
    .addArgument(new Argument('[switch]', 'at once, and in the configuration').choices(['on', 'off']))
    .option('--svcd <program>', 'the daemon; default: the one that came with this svc')
    .action(async (word: 'on' | 'off' | undefined, options, command: Command) =>
      run(command, async (session) => (await import('./seed.ts')).seed(session, word, options))
    )
  add(program, 'move <dir>', 'copy the store to another disk; the old one stays until you delete it')
    .option('--svcd <program>', 'the daemon; default: the one that came with this svc')
    .action(async (dir: string, options, command: Command) =>
      run(command, async (session) => (await import('./move.ts')).move(session, dir, options))
    )
  const bucket = (command: Command): Command =>
    command
      .option('--endpoint <url>', 'address of an S3-compatible store')
      .option('--region <name>', 'region of the bucket')
  bucket(add(program, 'backup <dest>', 'copy the store to a folder or a bucket; run again, it adds what is new'))
    .option('--verify', 'read back what is there already, and write what is damaged again')
    .option('--prune', 'afterwards remove older snapshots, and what only they need')
    .action(async (dest: string, options, command: Command) =>
      run(command, async (session) => (await import('./backup.ts')).backup(session, dest, options))
    )
  bucket(add(program, 'restore <src>', 'bring a store back from a backup, into an absent or empty folder'))
    .option('--root <dir>', 'the folder; default: the configured one')
    .option('--incomplete', 'go on without what is damaged in the backup')
    .option('--svcd <program>', 'the daemon; default: the one that came with this svc')
    .action(async (src: string, options, command: Command) =>
      run(command, async (session) => (await import('./backup.ts')).restore(session, src, options))
    )
  add(program, 'doctor', 'check everything that the store depends on, and suggest fixes').action(
    async (_options, command: Command) =>
      run(command, async (session) => (await import('./doctor.ts')).doctor(session, version))
  )
  add(program, 'completion', 'print a script for shell completion of commands and references')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action(async (shell: Shell, _options, command: Command) =>
      run(command, async (session) => (await import('./completion.ts')).completion(session, shell))
    )
  // Hidden: only the completion scripts call it.
  program
    .command('__complete [words...]', { hidden: true })
    .allowUnknownOption()
    .action(async (words: string[], _options, command: Command) =>
      run(command, async (session) => (await import('./completion.ts')).complete(session, program, words))
    )
}
