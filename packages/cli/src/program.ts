import { Command, Option } from 'commander'
import { usage } from './errors.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { dressHelp } from './help.ts'
import { addGetCommands } from './program/get.ts'
import { addInspectCommands } from './program/inspect.ts'
import { addMaintainCommands } from './program/maintain.ts'
import { addRemoveCommands } from './program/remove.ts'
import { addShareCommands } from './program/share.ts'
import { type ActionArguments, type CommandTools, type CommandWork, common, MODULES } from './program/tools.ts'
import { addUseCommands } from './program/use.ts'
import { addNamesOfOthers } from './program/words-of-others.ts'
import { type CommonOptions, openSession, type Session } from './session.ts'
import { awaitDaemon } from './starting.ts'
import type { Terminal } from './terminal.ts'
import { VersionAsked } from './versions.ts'

/** The groups of the first help page, in their order. */
const GROUPS: readonly (readonly [heading: string, addCommands: (tools: CommandTools) => void])[] = [
  ['Get models:', addGetCommands],
  ['Use them:', addUseCommands],
  ['Inspect:', addInspectCommands],
  ['Rename and remove:', addRemoveCommands],
  ['Share:', addShareCommands],
  ['Maintain:', addMaintainCommands]
]

/** Commands, by module or module and name, whose effect needs a daemon after they have ended. */
const STAYING: ReadonlySet<string> = new Set([
  'running',
  'service',
  'ui',
  'daemon.share',
  'daemon.swarm',
  'standing.addStanding'
])

/** Commands, by module and name, that fetch from peers which nobody names. */
const FINDING_PEERS: ReadonlySet<string> = new Set([
  'importSource.importSource',
  'imports.importBt',
  'catalog.importCatalog',
  'jobs.pull',
  'jobs.resume'
])

/** As it is typed after `svc`. */
const namesOf = (command: Command): string =>
  command.parent?.parent ? `${namesOf(command.parent)} ${command.name()}` : command.name()

function askedForVersion(): never {
  throw new VersionAsked()
}

/**
 * The commands of `svc`. Each loads its module only when it runs, to keep the start fast. `signal` aborts on Ctrl-C;
 * with `json` the caller prints the parser's errors.
 */
export function buildProgram(version: string, terminal: Terminal, signal: AbortSignal, json: boolean): Command {
  const program = programOf(terminal, json)
  const open: OpenSession = (options) => openSession(options, version, terminal, signal)
  const add: CommandTools['add'] = (nameAndArgs, description, parent = program) =>
    common(parent.command(nameAndArgs).description(description))
  const tools: CommandTools = {
    program,
    add,
    group: add,
    run: (module, name) => action(open, module, name, true),
    runAtOnce: (module, name) => action(open, module, name, false)
  }
  for (const [heading, addCommands] of GROUPS) {
    program.commandsGroup(heading)
    addCommands(tools)
  }
  addNamesOfOthers(program)
  dressHelp(program)
  return program
}

/** The program without its commands. */
const programOf = ({ stdout, stderr }: Terminal, json: boolean): Command =>
  common(new Command('svc'))
    .description('Keep models in a local, verified store. Talks to the daemon svcd over its socket.')
    .option('-V, --version', "print the version, and the running daemon's")
    .on('option:version', askedForVersion)
    .addOption(new Option('-v', 'the same').hideHelp())
    .on('option:v', askedForVersion)
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => stdout.text(text),
      writeErr: (text) => void (json || stderr.text(text)),
      getOutHelpWidth: () => stdout.columns ?? 100,
      getErrHelpWidth: () => stderr.columns ?? 100,
      outputError: (text, write) => write(text.replace(/^error: /, 'svc: '))
    })
    .addHelpText('after', () =>
      [
        '',
        'A model is ns/name:quant, case-insensitive; ns/name if it has one quant here; ns/name:tag+quant with a tag;',
        'ns/name@sha256:<hex> by digest. A leading svc:/// is optional. Help for a command: svc help COMMAND.',
        '',
        'Exit codes:',
        ...EXIT_HELP.map(([code, text]) => `  ${`${code}`.padEnd(4)} ${text}`),
        '',
        'First steps:',
        '  svc import hf Qwen/Qwen3-0.6B-GGUF:Q8_0    from the hub; or a file of yours:',
        '  svc import local ./model-q8_0.gguf --as my/model',
        '  svc ls'
      ].join('\n')
    )

type OpenSession = (options: CommonOptions) => Session

/** What a command does with a session of its own. `needsDaemon`: which is there, or is started. */
const action =
  (open: OpenSession, module: keyof typeof MODULES, name: PropertyKey, needsDaemon: boolean) =>
  async (...given: ActionArguments): Promise<void> => {
    const command = given.at(-1) as Command
    const options = command.optsWithGlobals<CommonOptions>()
    const carryOut = async (session: Session): Promise<void> => {
      const { [name]: work } = (await MODULES[module]()) as Readonly<Record<PropertyKey, CommandWork>>
      await work!(session, ...given)
    }
    const full = `${module}.${String(name)}`
    if (options.inProcess === true && (STAYING.has(module) || STAYING.has(full)))
      throw usage(`svc ${namesOf(command)} needs a daemon that stays: one with --in-process ends with its command`)
    if (needsDaemon && options.inProcess === true) {
      const { withDaemonInProcess } = await import('./service/in-process.ts')
      const openAt = (socket = options.socket): Session => open({ ...options, ...(socket && { socket }) })
      return withDaemonInProcess(openAt, carryOut, { findsPeers: FINDING_PEERS.has(full) })
    }
    const session = open(options)
    try {
      if (needsDaemon) await awaitDaemon(session)
      await carryOut(session)
    } finally {
      session.client.close()
    }
  }
