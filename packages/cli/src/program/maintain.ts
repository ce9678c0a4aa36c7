import { MANAGERS } from '@svc/internal-services'
import { Argument, type Command, Option } from 'commander'
import { SHELLS } from '../completion/scripts.ts'
import { usage } from '../errors.ts'
import { type CommandTools, DAEMON } from './tools.ts'

export function addMaintainCommands(tools: CommandTools): void {
  const { add, run, runAtOnce } = tools
  add('start', 'start the daemon; other commands do this by themselves')
    .addOption(DAEMON)
    .action(runAtOnce('running', 'start'))
  // other tools stop models, which is answered
  add('stop', 'end the daemon').allowExcessArguments().action(runAtOnce('running', 'stop'))
  add('restart', 'end the daemon, and start it again').addOption(DAEMON).action(runAtOnce('running', 'restart'))
  add('serve', 'run the daemon in the foreground, until Ctrl-C').addOption(DAEMON).action(runAtOnce('running', 'serve'))
  add('status', 'show the daemon, its store and its jobs').action(run('daemon', 'status'))
  add('jobs [id]', 'list running and recent jobs')
    .option('-f, --follow', 'follow a job to its end; without an id, the newest running job')
    .action(run('jobs', 'jobs'))
  add('resume [id]', 'go on with imports that a restart interrupted, or with one that failed').action(
    run('jobs', 'resume')
  )
  add('cancel <id>', 'cancel a job; the store keeps verified data for the next attempt')
    .option('--discard', 'free what unfinished downloads have fetched, and what no model needs')
    .action(run('jobs', 'cancel'))
  add('verify [target]', 'verify every byte of a model or of the whole store').action(run('jobs', 'verify'))
  add('fsck', 'the same as svc verify all').action(run('jobs', 'fsck'))
  add('doctor', 'check everything that the store depends on, and suggest fixes').action(runAtOnce('doctor', 'doctor'))
  addServiceCommands(tools)
  const hubs = ['hf'] as const
  add('login', 'store a token of the model hub, for gated and private repositories')
    .addArgument(new Argument('[hub]', 'the hub').choices(hubs).default('hf'))
    .option('--replace', 'replace a token that another program stored')
    .option('--no-check', 'store it without asking the hub')
    .action(run('login', 'login'))
  add('logout', 'remove the token of the model hub')
    .addArgument(new Argument('[hub]', 'the hub').choices(hubs).default('hf'))
    .action(runAtOnce('login', 'logout'))
  add('move <dir>', 'copy the store to another disk; the old one stays until you delete it')
    .option('--new', 'even if the folder had another store')
    .addOption(DAEMON)
    .action(runAtOnce('move', 'move'))
  const bucket = (command: Command): Command =>
    command
      .option('--endpoint <url>', 'URL of an S3-compatible store')
      .option('--region <name>', 'region of the bucket')
  bucket(add('backup <dest>', 'copy the store to a folder or a bucket; a second run adds what is new'))
    .option('--verify', 'read existing files back, and replace damaged ones')
    .option('--prune', 'afterwards remove older snapshots and the files that only they need')
    .action(runAtOnce('backup', 'backup'))
  bucket(add('restore <src>', 'restore a store from a backup into a new or empty folder'))
    .option('--root <dir>', 'the folder; default: the configured one')
    .option('--incomplete', 'continue without the damaged files of the backup')
    .option('--new', 'even if the folder had another store')
    .addOption(DAEMON)
    .action(runAtOnce('backup', 'restore'))
  addHelpCommands(tools)
}

function addHelpCommands({ program, add, runAtOnce }: CommandTools): void {
  add('completion', 'print a shell completion script')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action(runAtOnce('completion', 'completion'))
  // hidden: only the completion scripts call it.
  program
    .command('__complete [words...]', { hidden: true })
    .allowUnknownOption()
    .action(runAtOnce('completion', 'complete'))
  add('help [command...]', 'show what a command does').action((words: string[]) => {
    let page = program
    for (const word of words) {
      const inner = page.commands.find((each) => each.name() === word)
      if (inner === undefined) throw usage(`there is no command ${words.join(' ')}`, 'svc help lists them')
      page = inner
    }
    page.help()
  })
}

function addServiceCommands({ add, group, runAtOnce }: CommandTools): void {
  const services = group('service', 'run the daemon as a service of this user')
  const service = (name: string, description: string): Command =>
    add(name, description, services).addOption(
      new Option('--manager <name>', 'default: the service manager of this system').choices(MANAGERS)
    )
  service('install', 'start the daemon now and at each login')
    .addOption(DAEMON)
    .option('--dry-run', 'only show what it would write and run')
    .action(runAtOnce('service', 'install'))
  service('remove', 'remove the service; keep the store and the configuration')
    .option('--dry-run', 'only show what it would remove and run')
    .action(runAtOnce('service', 'remove'))
  service('status', 'show whether the service is installed, running and responding').action(
    runAtOnce('service', 'serviceStatus')
  )
}
