import { Command, Option } from 'commander'
import { addKeepCommands } from './commands/keep.ts'
import { addLoadCommands } from './commands/load.ts'
import { addPassOnCommands } from './commands/pass-on.ts'
import { usage } from './errors.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { COMMON_OPTIONS, dressHelp } from './help.ts'
import { type CommonOptions, openSession, type Session } from './session.ts'
import { awaitStart } from './starting.ts'
import type { Terminal } from './terminal.ts'
import { VersionAsked } from './versions.ts'

/** The options of every command, which are also accepted before the command. */
const common = (command: Command): Command =>
  command
    .addOption(new Option('--json', 'machine-readable output').helpGroup(COMMON_OPTIONS))
    .addOption(new Option('-q, --quiet', 'print only the result').helpGroup(COMMON_OPTIONS))
    .addOption(
      new Option('--socket <path>', "the daemon's socket; default: SVC_SOCKET, else the user's own").helpGroup(
        COMMON_OPTIONS
      )
    )

const list = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

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

  const runAtOnce = async (command: Command, work: (session: Session) => Promise<void>): Promise<void> => {
    const session = openSession(command.optsWithGlobals<CommonOptions>(), terminal, signal)
    try {
      await work(session)
    } finally {
      session.client.close()
    }
  }
  /** Runs commands that need the daemon. */
  const run: typeof runAtOnce = (command, work) =>
    runAtOnce(command, async (session) => {
      await awaitStart(session)
      await work(session)
    })
  const add = (parent: Command, nameAndArgs: string, description: string): Command =>
    common(parent.command(nameAndArgs).description(description))

  const imports = common(program.command('import')).description(
    'import a model from files, the hub, a swarm, the catalog or a registry'
  )
  const ofHub = (command: Command): Command =>
    command
      .option('--revision <rev>', 'a branch, tag or commit instead of the default branch')
      .option('--file <glob>', 'only weights whose name matches, such as "*q4_k_m*"; repeatable', list)
      .option(
        '--aux <choice>',
        'projectors and imatrix: f16, bf16, f32, imatrix (comma-separated), all or none; default: one projector'
      )
      .option('--all', 'all quants, without asking')
      .option('--as <ns/name>', 'another name to keep it under')
      .option('--keep-names', 'keep file names as they are; else Model-7B.Q4_K_M.gguf becomes model-7b-q4_k_m.gguf')
      .option('--private', 'keep it to yourself: neither announce nor share it')
      .option('--dry-run', 'only show what would be fetched, stored and skipped')
  const ofEach = (command: Command): Command =>
    command
      .option('-d, --detach', 'do not wait; print the job id')
      .option('--replace', 'give the name to this model, even if another one has it')
  ofHub(ofEach(imports))
    .argument('[source]', 'org/name:quant or an address of the hub, or a path')
    .action(async (source: string | undefined, options, command: Command) => {
      if (source === undefined) return command.help()
      return run(command, async (session) =>
        (await import('./commands/imports.ts')).importSource(session, source, options)
      )
    })
  const addImport = (nameAndArgs: string, description: string): Command =>
    ofEach(add(imports, nameAndArgs, description))

  addImport('local <path...>', 'import files and folders of this machine')
    .option('--as <ns/name>', 'the name to keep it under')
    .option(
      '--aux <choice>',
      'projectors and imatrix: f16, bf16, f32, imatrix (comma-separated), all or none; default: one projector'
    )
    .option('--quant <quants>', 'only these quants, comma-separated')
    .option('--file <glob>', 'only weights whose name matches, such as "*q4_k_m*"; repeatable', list)
    .option('--keep-names', 'keep file names as they are; else Model-7B.Q4_K_M.gguf becomes model-7b-q4_k_m.gguf')
    .option('--private', 'keep it to yourself: neither announce nor share it')
    .addOption(
      new Option(
        '--companions <which>',
        'which small files leave with it: those that loaders read (default), or all'
      ).choices(['loaders', 'all'])
    )
    .action(async (paths: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importLocal(session, paths, options))
    )
  ofHub(addImport('hf <org/name[:quant,...]>', 'import a repository of the model hub, at one commit')).action(
    async (repo: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importHf(session, repo, options))
  )
  addImport('bt <magnet|infohash>', 'import what another machine shares, verified by its digest')
    .option('--pin <digest>', 'the expected digest of the manifest; required')
    .option('--companions <digest@infohash>', 'the pin and the torrent of the files that lie beside the model')
    .option('--as <ns/name>', 'a name to keep it under')
    .option('--private', 'keep it to yourself: neither announce nor share it')
    .option('--webseed <url>', 'a web server that serves it; repeatable', list)
    .option('--tracker <url>', 'a tracker to ask for peers; repeatable', list)
    .option('--peer <host:port>', 'a peer to ask; repeatable', list)
    .action(async (source: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importBt(session, source, options))
    )
  addImport('catalog <owner/name[:quant,...]>', 'import from the community catalog, verified against the hub')
    .option(
      '--aux <choice>',
      'projectors and imatrix: f16, bf16, f32, imatrix (comma-separated), all or none; default: one projector'
    )
    .option('--quant <quants>', 'only these quants, comma-separated')
    .option('--file <glob>', 'the one whose file name matches, such as "*q4_k_m*"', list)
    .option('--all', 'all quants, without asking')
    .option('--trust-catalog', "trust the catalog's own record when the hub no longer has the model")
    .option('--as <ns/name>', 'another name to keep it under')
    .option('--peer <host:port>', 'a peer to ask; repeatable', list)
    .option('--keep-names', 'keep file names as they are; else Model-7B.Q4_K_M.gguf becomes model-7b-q4_k_m.gguf')
    .option('--private', 'keep it to yourself: neither announce nor share it')
    .action(async (repo: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/catalog.ts')).importCatalog(session, repo, options))
    )
  addImport('oci <source>', 'from an OCI image layout (a folder, a .tar) or a registry: registry/name:tag')
    .option('--tag <tag>', 'one model of a layout; default: all of them')
    .option('--as <ns/name>', 'the name to keep it under; default: the one that it was packed under')
    .option('--quant <quants>', 'only these quants, comma-separated')
    .option('--file <glob>', 'only weights whose name matches, such as "*q4_k_m*"; repeatable', list)
    .option('--keep-names', 'keep names as they are; else Q4_K_M becomes q4_k_m')
    .option('--private', 'keep it to yourself: neither announce nor share it')
    .option('--plain-http', 'use HTTP without TLS, as local registries do')
    .action(async (source: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/oci.ts')).importOci(session, source, options))
    )

  const catalog = common(program.command('catalog')).description('the community catalog of torrents')
  add(catalog, 'search <terms...>', 'search the catalog for models').action(
    async (terms: string[], _options, command: Command) =>
      run(command, async (session) => (await import('./commands/catalog.ts')).catalogSearch(session, terms))
  )

  addLoadCommands(program, { add, run })
  add(program, 'ls [text]', 'list the models in the store, one line per quant')
    .alias('list')
    .option(
      '--filter <filter>',
      'size>1GB, used>30d, imported<7d, complete, incomplete, damaged, private; repeatable',
      list
    )
    .option('--sort <key>', 'name (default), size, imported or used')
    .option('--format <format>', 'table, json, csv or ids')
    .action(async (text: string | undefined, options, command: Command) =>
      run(command, async (session) => (await import('./commands/inventory.ts')).ls(session, text, options))
    )
  add(program, 'du [ref]', 'show how much disk space models take, alone and shared').action(
    async (ref: string | undefined, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/du.ts')).du(session, ref))
  )
  add(program, 'rm <ref...>', 'remove models; with ns/name all quants of it')
    .option('--tags', 'remove its tags as well; a tag keeps the model it names')
    .action(async (refs: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).rm(session, refs, options))
    )
  add(program, 'gc', 'free the space of removed models')
    .option('--dry-run', 'only show how much that would be')
    .option('--older-than <time>', 'also remove what upgrades left as before-<date> so long ago: 0, 30d')
    .option('--grace <time>', 'keep what was imported this recently: 15m, 12h, 7d (default 0)')
    .action(async (options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).gc(session, options))
    )
  add(program, 'private <ref...>', 'keep models to yourself; with ns/name all quants of it')
    .option('--off', 'share them again')
    .action(async (refs: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).setPrivate(session, refs, options))
    )
  add(program, 'fsck', 'the same as svc verify all').action(async (_options, command: Command) =>
    run(command, async (session) => (await import('./commands/jobs.ts')).verify(session, 'all'))
  )
  add(program, 'show <ref> [name]', 'show files, sizes and licence of a model; with ns/name its quants')
    .alias('info')
    .option('--context <tokens>', 'of show hf: how much memory is for; default: as the model says, at most 32768')
    .action(async (ref: string, name: string | undefined, options, command: Command) =>
      run(command, async (session) =>
        ref === 'hf' && name !== undefined
          ? (await import('./commands/remote.ts')).showHf(session, name, options)
          : (await import('./commands/model.ts')).show(session, ref, name)
      )
    )
  add(program, 'cat <target>', 'print a file of a model: REF, REF#name, REF#manifest or a digest')
    .option('--range <start-end>', 'only these bytes: 0-99, 100-, or -16 for the last 16')
    .action(async (target: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/cat.ts')).cat(session, target, options))
    )
  add(program, 'resolve <ref>', 'print the digests that a reference stands for').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/model.ts')).resolve(session, ref))
  )
  add(program, 'pull <ref>', 'fetch the missing files of a model, or a model that only the hub has')
    .option('--wait <time>', 'use the hub if no peer sends anything for this long: 30s, 10m (default 15s)')
    .action(async (ref: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).pull(session, ref, options))
    )
  add(program, 'search <words...>', 'search the hub for models')
    .option('--gguf', 'only repositories with GGUF files')
    .option('--safetensors', 'only repositories with safetensors')
    .option('--size <range>', 'parameters: 1B-8B, -8B or 70B-')
    .option('--license <id>', 'as the hub names it: apache-2.0')
    .option('--limit <n>', 'repositories of a page, at most 100 (default 20)')
    .option('--page <n>', 'a later page')
    .option('--catalog', 'the community catalog instead')
    .option('--here', 'the models in the store instead')
    .option('--format <format>', 'table, json or ids')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/search.ts')).search(session, words, options))
    )
  add(program, 'outdated [ref...]', 'ask the hub whether what models came from has newer commits').action(
    async (refs: string[], _options, command: Command) =>
      run(command, async (session) => (await import('./commands/newer.ts')).outdated(session, refs))
  )
  add(program, 'upgrade [ref...]', 'import newer commits; what a name stood for before keeps a tag')
    .option('--all', 'whatever is newer')
    .option('--dry-run', 'only show what would be fetched')
    .option('--replace', 'give the name to this model, even if another one has it')
    .action(async (refs: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/newer.ts')).upgrade(session, refs, options))
    )
  add(program, 'companions <ref>', 'fetch what lies beside a model at the hub, where its import did not').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).companions(session, ref))
  )
  add(program, 'verify [target]', 'read a model, or the whole store, and verify every byte').action(
    async (target: string | undefined, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).verify(session, target))
  )
  add(program, 'jobs [id]', 'list running jobs and those that ended lately')
    .option('-f, --follow', 'follow a job to its end; without an id the newest running one')
    .action(async (id: string | undefined, options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).jobs(session, id, options))
    )
  add(program, 'cancel <id>', 'cancel a job; verified data is kept for the next attempt').action(
    async (id: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).cancel(session, id))
  )
  add(program, 'share <ref>', 'share a model now, and print the command for another machine').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/daemon.ts')).share(session, ref))
  )
  add(program, 'status', 'show the daemon, its store and its jobs').action(async (_options, command: Command) =>
    run(command, async (session) => (await import('./commands/daemon.ts')).status(session))
  )
  add(program, 'swarm', 'show what is shared with whom, and how fast').action(async (_options, command: Command) =>
    run(command, async (session) => (await import('./commands/daemon.ts')).swarm(session))
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
