import { Command, Option } from 'commander'
import {
  ALL,
  AUX,
  type CommandTools,
  common,
  EVICT,
  imported,
  list,
  PEER,
  PLAIN_HTTP,
  PRIVATE,
  QUANT
} from './command-tools.ts'
import { addKeepCommands } from './commands/keep.ts'
import { addLoadCommands } from './commands/load.ts'
import { addPassOnCommands } from './commands/pass-on.ts'
import { usage } from './errors.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { dressHelp } from './help.ts'
import { type CommonOptions, openSession } from './session.ts'
import { awaitStart } from './starting.ts'
import type { Terminal } from './terminal.ts'
import { VersionAsked } from './versions.ts'

function askedForVersion(): never {
  throw new VersionAsked()
}

/**
 * The commands of `svc`. Each loads its module only when it runs, to keep the start fast. `signal` aborts on Ctrl-C;
 * with `json` the caller prints the parser's errors.
 */
export function buildProgram(version: string, terminal: Terminal, signal: AbortSignal, json: boolean): Command {
  const { stdout, stderr } = terminal
  const program = common(new Command('svc'))
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
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void (json || stderr.write(text)),
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

  const runAtOnce: CommandTools['run'] =
    (load) =>
    async (...given) => {
      const command = given.at(-1) as Command
      const session = openSession(command.optsWithGlobals<CommonOptions>(), terminal, signal)
      try {
        const work = await load()
        await work(session, ...given)
      } finally {
        session.client.close()
      }
    }
  /** For commands that need the daemon. */
  const run: CommandTools['run'] = (load) =>
    runAtOnce(async () => async (session, ...given) => {
      await awaitStart(session)
      const work = await load()
      await work(session, ...given)
    })
  const add: CommandTools['add'] = (parent, nameAndArgs, description) =>
    common(parent.command(nameAndArgs).description(description))

  const imports = common(program.command('import')).description(
    'import a model from files, the hub, a swarm, the catalog or a registry'
  )
  const ofHub = (command: Command): Command =>
    imported(command, 'another name to keep it under')
      .option('--revision <rev>', 'a branch, tag or commit instead of the default branch')
      .addOption(AUX)
      .addOption(ALL)
      .option('--dry-run', 'only show what would be fetched, stored and skipped')
  const ofEach = (command: Command): Command =>
    command
      .option('-d, --detach', 'do not wait; print the job id')
      .option('--replace', 'give the name to this model, even if another one has it')
      .addOption(EVICT)
  const importSource = run(() => import('./commands/imports.ts').then(({ importSource }) => importSource))
  ofHub(ofEach(imports))
    .argument('[source]', 'org/name:quant or an address of the hub, or a path')
    .action((source: string | undefined, options, command: Command) =>
      source === undefined ? command.help() : importSource(source, options, command)
    )
  const addImport = (nameAndArgs: string, description: string): Command =>
    ofEach(add(imports, nameAndArgs, description))

  imported(addImport('local <path...>', 'import files and folders of this machine'), 'the name to keep it under')
    .addOption(AUX)
    .addOption(QUANT)
    .addOption(
      new Option(
        '--companions <which>',
        'which companion files to share with it: those that loaders read (default), or all'
      ).choices(['loaders', 'all'])
    )
    .action(run(() => import('./commands/imports.ts').then(({ importLocal }) => importLocal)))
  ofHub(addImport('hf <org/name[:quant,...]>', 'import a repository of the model hub, at one commit')).action(
    run(() => import('./commands/imports.ts').then(({ importHf }) => importHf))
  )
  addImport('bt <magnet|infohash>', 'import what another machine shares, verified by its digest')
    .option('--pin <digest>', 'the expected digest of the manifest; required')
    .option('--companions <digest@infohash>', 'the pin and the torrent of the companion files')
    .option('--as <ns/name>', 'a name to keep it under')
    .addOption(PRIVATE)
    .option('--webseed <url>', 'a web server that serves it; repeatable', list)
    .option('--tracker <url>', 'a tracker to ask for peers; repeatable', list)
    .addOption(PEER)
    .action(run(() => import('./commands/imports.ts').then(({ importBt }) => importBt)))
  const ofCatalog = addImport(
    'catalog <owner/name[:quant,...]>',
    'import from the community catalog, verified against the hub'
  )
  imported(ofCatalog, 'another name to keep it under')
    .addOption(AUX)
    .addOption(QUANT)
    .addOption(ALL)
    .option('--trust-catalog', "trust the catalog's own record when the hub no longer has the model")
    .addOption(PEER)
    .action(run(() => import('./commands/catalog.ts').then(({ importCatalog }) => importCatalog)))
  const ofOci = addImport(
    'oci <source>',
    'from an OCI image layout (a folder, a .tar) or a registry: registry/name:tag'
  )
  imported(ofOci, 'the name to keep it under; default: the one that it was packed under')
    .option('--tag <tag>', 'one model of a layout; default: all of them')
    .addOption(QUANT)
    .addOption(PLAIN_HTTP)
    .action(run(() => import('./commands/oci.ts').then(({ importOci }) => importOci)))

  const catalog = common(program.command('catalog')).description('the community catalog of torrents')
  add(catalog, 'search <terms...>', 'search the catalog for models').action(
    run(() => import('./commands/catalog.ts').then(({ catalogSearch }) => catalogSearch))
  )

  addLoadCommands(program, { add, run })
  add(program, 'ls [text]', 'list the models in the store, one line per quant')
    .alias('list')
    .option(
      '--filter <filter>',
      'size>1GB, used>30d, imported<7d, complete, incomplete, away, damaged, private; repeatable',
      list
    )
    .addOption(
      new Option('--sort <key>', 'what comes first (default name)').choices(['name', 'size', 'imported', 'used'])
    )
    .addOption(new Option('--format <format>', 'how to print').choices(['table', 'json', 'csv', 'ids']))
    .action(run(() => import('./commands/inventory.ts').then(({ ls }) => ls)))
  add(program, 'du [ref]', 'show how much disk space models take, alone and shared').action(
    run(() => import('./commands/du.ts').then(({ du }) => du))
  )
  add(program, 'rm <ref...>', 'remove models; with ns/name all quants of it')
    .option('--tags', 'remove its tags as well; a tag keeps the model it names')
    .action(run(() => import('./commands/remove.ts').then(({ rm }) => rm)))
  add(program, 'gc', 'free the space of removed models')
    .option('--dry-run', 'only show how much that would be')
    .option('--older-than <time>', 'also remove what upgrades left as before-<date> so long ago: 0, 30d')
    .option('--grace <time>', 'keep what was imported this recently: 15m, 12h, 7d (default 0)')
    .action(run(() => import('./commands/remove.ts').then(({ gc }) => gc)))
  add(program, 'private <ref...>', 'keep models to yourself; with ns/name all quants of it')
    .option('--off', 'share them again')
    .action(run(() => import('./commands/remove.ts').then(({ setPrivate }) => setPrivate)))
  add(program, 'evict <ref...>', 'free the space of models, and keep their names; with ns/name of all its quants')
    .option('--force', 'even if nothing else was seen to have the bytes')
    .action(run(() => import('./commands/room.ts').then(({ evict }) => evict)))
  add(program, 'pin <ref...>', 'keep the bytes of models here; with ns/name of all its quants').action(
    run(() => import('./commands/room.ts').then(({ pin }) => pin))
  )
  add(program, 'unpin <ref...>', 'let them be evicted again').action(
    run(() => import('./commands/room.ts').then(({ unpin }) => unpin))
  )
  add(program, 'fsck', 'the same as svc verify all').action(
    run(async () => async (session) => (await import('./commands/jobs.ts')).verify(session, 'all'))
  )
  add(program, 'show <ref> [name]', 'show files, sizes and licence of a model; with ns/name its quants')
    .alias('info')
    .option('--context <tokens>', 'of show hf: how much memory is for; default: as the model says, at most 32768')
    .action(
      run(
        async () => async (session, ref, name, options) =>
          ref === 'hf' && name !== undefined
            ? (await import('./commands/remote.ts')).showHf(session, name, options)
            : (await import('./commands/model.ts')).show(session, ref, name)
      )
    )
  add(program, 'cat <target>', 'print a file of a model: REF, REF#name, REF#manifest or a digest')
    .option('--range <start-end>', 'only these bytes: 0-99, 100-, or -16 for the last 16')
    .action(run(() => import('./commands/cat.ts').then(({ cat }) => cat)))
  add(program, 'resolve <ref>', 'print the digests that a reference stands for').action(
    run(() => import('./commands/model.ts').then(({ resolve }) => resolve))
  )
  add(program, 'pull <ref>', 'fetch the missing files of a model, or a model that only the hub has')
    .option(
      '--wait <time>',
      'import again from the hub if no peer sends anything for this long: 30s, 10m (default 15s)'
    )
    .addOption(EVICT)
    .action(run(() => import('./commands/jobs.ts').then(({ pull }) => pull)))
  add(program, 'search <words...>', 'search the hub for models')
    .option('--gguf', 'only repositories with GGUF files')
    .option('--safetensors', 'only repositories with safetensors')
    .option('--size <range>', 'parameters: 1B-8B, -8B or 70B-')
    .option('--license <name>', 'as the hub names it: apache-2.0')
    .option('--limit <n>', 'repositories of a page, at most 100 (default 20)')
    .option('--page <n>', 'a later page')
    .option('--catalog', 'the community catalog instead')
    .option('--here', 'the models in the store instead')
    .addOption(new Option('--format <format>', 'how to print').choices(['table', 'json', 'ids']))
    .action(run(() => import('./commands/search.ts').then(({ search }) => search)))
  add(program, 'outdated [ref...]', 'ask the hub whether what models came from has newer commits').action(
    run(() => import('./commands/newer.ts').then(({ outdated }) => outdated))
  )
  add(program, 'upgrade [ref...]', 'import newer commits; what a name stood for before keeps a tag')
    .option('--all', 'whatever is newer')
    .option('--dry-run', 'only show what would be fetched')
    .option('--replace', 'also where the hub has renamed the repository')
    .addOption(EVICT)
    .action(run(() => import('./commands/newer.ts').then(({ upgrade }) => upgrade)))
  add(program, 'companions <ref>', 'fetch what lies beside a model at the hub, where its import did not').action(
    run(() => import('./commands/jobs.ts').then(({ companions }) => companions))
  )
  add(program, 'verify [target]', 'read a model, or the whole store, and verify every byte').action(
    run(() => import('./commands/jobs.ts').then(({ verify }) => verify))
  )
  add(program, 'jobs [id]', 'list running jobs and those that ended lately')
    .option('-f, --follow', 'follow a job to its end; without an id the newest running one')
    .action(run(() => import('./commands/jobs.ts').then(({ jobs }) => jobs)))
  add(program, 'cancel <id>', 'cancel a job; verified data is kept for the next attempt').action(
    run(() => import('./commands/jobs.ts').then(({ cancel }) => cancel))
  )
  add(program, 'share <ref>', 'share a model now, and print the command for another machine').action(
    run(() => import('./commands/daemon.ts').then(({ share }) => share))
  )
  add(program, 'status', 'show the daemon, its store and its jobs').action(
    run(() => import('./commands/daemon.ts').then(({ status }) => status))
  )
  add(program, 'swarm', 'show what is shared with whom, and how fast').action(
    run(() => import('./commands/daemon.ts').then(({ swarm }) => swarm))
  )
  const group = (name: string, description: string): Command => common(program.command(name)).description(description)
  addPassOnCommands(program, { add, group, run })
  addKeepCommands(program, version, { add, group, run: runAtOnce })
  add(program, 'help [command...]', 'show what a command does').action((words: string[]) => {
    let page = program
    for (const word of words) {
      const inner = page.commands.find((each) => each.name() === word)
      if (inner === undefined) throw usage(`there is no command ${words.join(' ')}`, 'svc help lists them')
      page = inner
    }
    page.help()
  })
  dressHelp(program)
  return program
}
