import { type Command, Option } from 'commander'
import { COMMON_OPTIONS } from '../help.ts'
import type { Session } from '../session.ts'

/** What commander gives to an action: the arguments, the options, the command. */
export type ActionArguments = Parameters<Parameters<Command['action']>[0]>

export type CommandWork = (session: Session, ...given: ActionArguments) => Promise<void> | void

/** The modules of the commands. Each is loaded only when one of its commands runs, to keep the start fast. */
export const MODULES = {
  adopt: () => import('../commands/adopt.ts'),
  backup: () => import('../commands/backup.ts'),
  cat: () => import('../commands/cat.ts'),
  catalog: () => import('../commands/catalog.ts'),
  completion: () => import('../commands/completion.ts'),
  daemon: () => import('../commands/daemon.ts'),
  doctor: () => import('../commands/doctor.ts'),
  du: () => import('../commands/du.ts'),
  exec: () => import('../commands/exec.ts'),
  importSource: () => import('../commands/import-source.ts'),
  imports: () => import('../commands/imports.ts'),
  inspect: () => import('../commands/inspect.ts'),
  inventory: () => import('../commands/inventory.ts'),
  jobs: () => import('../commands/jobs.ts'),
  login: () => import('../commands/login.ts'),
  model: () => import('../commands/model.ts'),
  move: () => import('../commands/move.ts'),
  newer: () => import('../commands/newer.ts'),
  oci: () => import('../commands/oci.ts'),
  path: () => import('../commands/path.ts'),
  ps: () => import('../commands/ps.ts'),
  publish: () => import('../commands/publish.ts'),
  remove: () => import('../commands/remove.ts'),
  rename: () => import('../commands/rename.ts'),
  room: () => import('../commands/room.ts'),
  run: () => import('../commands/run.ts'),
  running: () => import('../commands/running.ts'),
  search: () => import('../commands/search.ts'),
  seed: () => import('../commands/seed.ts'),
  service: () => import('../commands/service.ts'),
  signature: () => import('../commands/signature.ts'),
  standing: () => import('../commands/standing.ts'),
  tag: () => import('../commands/tag.ts'),
  ui: () => import('../commands/ui.ts'),
  view: () => import('../commands/view.ts'),
  why: () => import('../commands/why.ts')
}
type Modules = { readonly [M in keyof typeof MODULES]: Awaited<ReturnType<(typeof MODULES)[M]>> }

/** What `program.ts` gives to those who add commands. */
export interface CommandTools {
  readonly program: Command
  /** Adds a command, to the program if there is no other parent. */
  add(nameAndArgs: string, description: string, parent?: Command): Command
  /** Adds a command that has only commands. */
  group(name: string, description: string): Command
  /** The action of a command that needs the daemon, and waits while it starts. */
  run<M extends keyof Modules>(module: M, name: keyof Modules[M]): (...given: ActionArguments) => Promise<void>
  /** The action of a command that works without the daemon, too. */
  runAtOnce: CommandTools['run']
}

/** The options of every command, which are also accepted before the command. */
export const common = (command: Command): Command =>
  command
    .addOption(new Option('--json', 'machine-readable output').helpGroup(COMMON_OPTIONS))
    .addOption(new Option('-q, --quiet', 'print only the result').helpGroup(COMMON_OPTIONS))
    .addOption(
      new Option('--in-process', 'be the daemon for this command, if none runs: in CI and containers').helpGroup(
        COMMON_OPTIONS
      )
    )
    .addOption(
      new Option('--socket <path>', "the daemon's socket; default: SVC_SOCKET, else the user's own").helpGroup(
        COMMON_OPTIONS
      )
    )

/** Of an option that may be given several times. */
export const list = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value
]

export const ALL = new Option('--all', 'import all quants without asking')
export const AUX = new Option(
  '--aux <choice>',
  'beside the weights: f16, bf16, f32 (projector), draft:QUANT, imatrix, lora (comma-separated), all or none; default: one projector and one draft head'
)
export const DAEMON = new Option('--svcd <program>', 'the svcd to run; default: the one installed with this svc')
export const EVICT = new Option(
  '--evict',
  'if space is short, evict models that the daemon can fetch again, without asking'
)
export const FORCE = new Option('--force', 'import weights that no runtime can load, too; they are not shared')
export const IMAGE = new Option(
  '--image',
  'write an ordinary image with the files below models/, for runtimes that cannot mount artifacts'
)
export const PEER = new Option('--peer <host:port>', 'a peer to ask; repeatable').argParser(list)
export const PLAIN_HTTP = new Option('--plain-http', 'use HTTP without TLS, as local registries do')
export const PRIVATE = new Option('--private', 'keep it private: do not announce or share it')
export const OPAQUE = new Option(
  '--opaque',
  'import every file as it is, or those of --file, as one model: ONNX, whisper.cpp and other formats'
)
export const ALLOW_PICKLE = new Option(
  '--allow-pickle',
  'with --opaque, import pickles, too, which can run code when they are loaded'
)
export const QUANT = new Option('--quant <quants>', 'only these quants, comma-separated')
export const WITHHELD = new Option(
  '--withheld',
  'include withheld models, marked as such; svc why says which are withheld'
)

/** The options of an import that chooses among files. */
export const imported = (command: Command, as: string): Command =>
  command
    .option('--as <ns/name>', as)
    .option('--file <glob>', 'only weights whose name matches, such as "*q4_k_m*"; repeatable', list)
    .option('--keep-names', 'keep file names as they are; else Model-7B.Q4_K_M.gguf becomes model-7b-q4_k_m.gguf')
    .addOption(PRIVATE)
    .addOption(FORCE)
