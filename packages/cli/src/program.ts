import { Command } from 'commander'
import { addKeepCommands } from './commands/keep.ts'
import { addLoadCommands } from './commands/load.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { type CommonOptions, openSession, type Session } from './session.ts'
import { awaitStart } from './starting.ts'
import type { Terminal } from './terminal.ts'
import { VersionAsked } from './versions.ts'

const REF = 'ns/name:quant, ns/name:tag+quant or ns/name@sha256:<hex>; svc:/// in front is fine'

/** The options of every command, which the program itself takes as well. */
const common = (command: Command): Command =>
  command
    .option('--json', 'machine output')
    .option('-q, --quiet', 'only what was asked for')
    .option('--socket <path>', "the daemon's socket (else SVC_SOCKET, else the per-user default)")

const list = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value]

/**
 * The commands of `svc`. Each loads its module when it runs, so that the start is quick.
 * `signal` aborts on Ctrl-C; with `json` the parser's own complaints are left to the caller.
 */
export function buildProgram(version: string, terminal: Terminal, signal: AbortSignal, json: boolean): Command {
  const { stdout, stderr } = terminal
  const program = common(new Command('svc'))
    .description('Keep models in a local, verified store. Talks to the daemon svcd over its socket.')
    .option('-V, --version', "print the version, and the running daemon's")
    .on('option:version', () => {
      throw new VersionAsked()
    })
    .helpOption('-h, --help', 'show help')
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
        `REF is ${REF}.`,
        'Every command takes --json (one document; while watching one a line), -q and --socket, before or after it.',
        '',
        'Exit codes:',
        ...EXIT_HELP.map(([code, text]) => `  ${`${code}`.padEnd(4)} ${text}`),
        '',
        'Start:  svc import local ./model.gguf --as my/model && svc ls'
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
  /** For what needs the daemon. */
  const run: typeof runAtOnce = (command, work) =>
    runAtOnce(command, async (session) => {
      await awaitStart(session)
      await work(session)
    })
  const add = (parent: Command, nameAndArgs: string, description: string): Command =>
    common(parent.command(nameAndArgs).description(description))

  const imports = common(program.command('import')).description('bring a model in')
  const addImport = (nameAndArgs: string, description: string): Command =>
    add(imports, nameAndArgs, description).option('-d, --detach', 'do not wait; print the job id')

  addImport('local <path...>', 'from files and folders of this machine')
    .option('--as <ns/name>', 'the name to keep it under')
    .option('--quant <quants>', 'only these, with commas between them')
    .option('--file <glob>', 'only weights that fit; repeatable', list)
    .option('--keep-names', 'keep names as they are; by default quants are read as publishers spell them')
    .option('--private', 'announce it to nobody, give it to nobody')
    .action(async (paths: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importLocal(session, paths, options))
    )
  addImport('hf <org/name[:quant,...]>', 'from the model hub, at one commit')
    .option('--revision <rev>', 'branch, tag or commit')
    .option('--file <glob>', 'only weights that fit; repeatable', list)
    .option('--all', 'every quant, where there are several')
    .option('--as <ns/name>', 'another name to keep it under')
    .option('--keep-names', 'keep names as they are; by default quants are read as publishers spell them')
    .option('--private', 'announce it to nobody, give it to nobody')
    .option('--dry-run', 'only show what would be fetched, stored and skipped')
    .action(async (repo: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importHf(session, repo, options))
    )
  addImport('bt <magnet|infohash>', 'from a BitTorrent v2 swarm, pinned')
    .option('--pin <digest>', 'the manifest digest; required')
    .option('--as <ns/name>', 'a name to keep it under')
    .option('--private', 'announce it to nobody, give it to nobody')
    .option('--webseed <url>', 'repeatable', list)
    .option('--tracker <url>', 'repeatable', list)
    .option('--peer <host:port>', 'repeatable', list)
    .action(async (source: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importBt(session, source, options))
    )
  addImport('catalog <owner/name[:quant]>', 'from the community catalog, anchored to the hub')
    .option('--quant <quant>', 'which of its quants')
    .option('--trust-catalog', "trust the catalog's own record when the hub no longer has the model")
    .option('--as <ns/name>', 'another name to keep it under')
    .option('--peer <host:port>', 'repeatable', list)
    .option('--keep-names', 'keep names as they are; by default quants are read as publishers spell them')
    .option('--private', 'announce it to nobody, give it to nobody')
    .action(async (repo: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/imports.ts')).importCatalog(session, repo, options))
    )

  const catalog = common(program.command('catalog')).description('the community catalog')
  add(catalog, 'search <terms...>', 'what it lists').action(async (terms: string[], _options, command: Command) =>
    run(command, async (session) => (await import('./commands/daemon.ts')).catalogSearch(session, terms))
  )

  add(program, 'ls [text]', 'what is here, a line per quant')
    .option('--filter <filter>', 'size>1GB, used>30d, imported<7d, incomplete, damaged, private; repeatable', list)
    .option('--sort <key>', 'name (default), size, imported or used')
    .option('--format <format>', 'table, json, csv or ids')
    .action(async (text: string | undefined, options, command: Command) =>
      run(command, async (session) => (await import('./commands/inventory.ts')).ls(session, text, options))
    )
  add(program, 'du [ref]', 'what models cost alone, and what they share').action(
    async (ref: string | undefined, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/inventory.ts')).du(session, ref))
  )
  add(program, 'rm <ref...>', 'take models away; with ns/name all quants of it')
    .option('--tags', 'older snapshots as well, which otherwise protect what they name')
    .action(async (refs: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).rm(session, refs, options))
    )
  add(program, 'gc', 'give back the space of what was removed')
    .option('--dry-run', 'only tell how much')
    .option('--grace <time>', 'keep what came in so recently: 15m, 12h, 7d (default 0)')
    .action(async (options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).gc(session, options))
    )
  add(program, 'private <ref...>', 'keep models from everybody; with ns/name all quants of it')
    .option('--off', 'give them to others again')
    .action(async (refs: string[], options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).setPrivate(session, refs, options))
    )
  add(program, 'fsck', 'hash the whole store again, and tell which models are hurt').action(
    async (_options, command: Command) =>
      run(command, async (session) => (await import('./commands/remove.ts')).fsck(session))
  )
  add(program, 'show <ref>', 'files, sizes, licence of a model; with ns/name its quants').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/model.ts')).show(session, ref))
  )
  add(program, 'cat <target>', 'bytes of a file: REF, REF#name, REF#manifest or a digest')
    .option('--range <start-end>', 'inclusive, as in HTTP: 0-99, 100-, -16')
    .action(async (target: string, options, command: Command) =>
      run(command, async (session) => (await import('./commands/cat.ts')).cat(session, target, options))
    )
  add(program, 'resolve <ref>', 'the digests that a reference stands for').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/model.ts')).resolve(session, ref))
  )
  add(program, 'pull <ref>', 'fetch what is missing of a known model from the swarm').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).pull(session, ref))
  )
  add(program, 'verify [target]', 're-hash a model, a blob, or all (default)').action(
    async (target: string | undefined, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).verify(session, target))
  )
  add(program, 'jobs [id]', 'jobs since the daemon started')
    .option('-f, --follow', 'watch it to its end; without an id the newest that runs')
    .action(async (id: string | undefined, options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).jobs(session, id, options))
    )
  add(program, 'cancel <id>', 'cancel a job; what was verified is kept').action(
    async (id: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/jobs.ts')).cancel(session, id))
  )
  add(program, 'share <ref>', 'what another machine needs to fetch this model from here').action(
    async (ref: string, _options, command: Command) =>
      run(command, async (session) => (await import('./commands/daemon.ts')).share(session, ref))
  )
  add(program, 'status', 'the daemon, its store, its jobs').action(async (_options, command: Command) =>
    run(command, async (session) => (await import('./commands/daemon.ts')).status(session))
  )
  add(program, 'swarm', 'torrents, peers and rates').action(async (_options, command: Command) =>
    run(command, async (session) => (await import('./commands/daemon.ts')).swarm(session))
  )
  const group = (name: string, description: string): Command => common(program.command(name)).description(description)
  addLoadCommands(program, { add, run })
  addKeepCommands(program, version, { add, group, run: runAtOnce })
  return program
}
