import { type Command, Help } from 'commander'

/** Heading of the options that every command has. */
export const COMMON_OPTIONS = 'Options of every command:'

/**
 * The text below the options of a help page: some sentences, then examples with explanations. Keys are the words after
 * `svc`.
 */
interface More {
  readonly text?: string
  readonly examples: readonly (readonly [line: string, does: string])[]
}

const MORE: Readonly<Record<string, More>> = {
  'import local': {
    text: 'Every quant found comes in, unless --quant or --file choose. The first time it is asked whether models of your own are shared with others.',
    examples: [
      ['svc import local ./model-q8_0.gguf --as me/model', 'one file'],
      ['svc import local ./my-model --as me/model --private', 'a folder, for yourself alone']
    ]
  },
  'import hf': {
    text: 'Where a repository holds several quants and none is named, svc shows them with their sizes and asks. Gated repositories need SVC_HF_TOKEN in the environment of the daemon.',
    examples: [
      ['svc import hf Qwen/Qwen3-0.6B-GGUF:Q8_0', 'one quant'],
      ['svc import hf Qwen/Qwen3-0.6B-GGUF:q4_k_m,q8_0', 'two, in any case'],
      ['svc import hf Qwen/Qwen3-0.6B-GGUF --dry-run', 'only look']
    ]
  },
  'import bt': {
    text: 'The other machine prints this command, with all that belongs to it: svc share REF.',
    examples: [["svc import bt 'magnet:?xt=…' --pin sha256:… --as me/model", '']]
  },
  'import catalog': {
    text: 'The bytes come from a BitTorrent swarm that the catalog lists, and must be those that the hub names. [catalog] endpoint in the configuration says which catalog.',
    examples: [
      ['svc catalog search qwen', 'what there is'],
      ['svc import catalog Qwen/Qwen3-0.6B-GGUF:q8_0', 'bring it in']
    ]
  },
  'import oci': {
    text: 'A path that is there is read as a layout; anything else is looked for in a registry, with the login of docker, podman or oras.',
    examples: [
      ['svc import oci ./models.tar', 'what svc export oci wrote'],
      ['svc import oci registry.example/team/model:q4_k_m', 'from a registry'],
      ['svc import oci registry.example/team/other:1 --as team/other', 'what another tool packed']
    ]
  },
  'export oci': {
    text: 'Interrupted, the same command goes on where it stopped.',
    examples: [
      ['svc export oci acme/model:q8_0 ./models.tar', 'one file, to be carried'],
      ['svc export oci acme/model:q8_0 acme/model:q4_k_m ./layout', 'a folder, which takes more later']
    ]
  },
  push: {
    text: 'The login is that of docker, podman or oras. What the registry has already is not sent.',
    examples: [['svc push acme/model:q8_0 registry.example/team/model', 'the tag is the quant']]
  },
  publish: {
    text: 'The place becomes a webseed: svc import bt and other clients of BitTorrent v2 load from it. What is there already is not written again; interrupted, the same command goes on where it stopped. Keys for buckets come from where the tools of AWS look for them.',
    examples: [
      ['svc publish acme/model:q8_0 /srv/www/models --url https://models.example/', 'below a web server'],
      ['svc publish acme/model:q8_0 acme/model:q4_k_m s3://bucket/models', 'a bucket'],
      ['svc publish acme/model:q8_0 s3://bucket --endpoint https://s3.example', 'of an object store of your own']
    ]
  },
  'catalog search': { examples: [['svc catalog search llama 8b', '']] },
  ls: {
    text: 'SHARED is "yes" for what others get now, "not yet" for what they get from the next start of the daemon on (or now: svc share), "private" or "held back" for what nobody gets.',
    examples: [
      ['svc ls qwen', 'those whose name holds it'],
      ["svc ls --filter 'size>10GB' --filter 'used>30d' --sort size", 'large ones, unused for a month'],
      ['svc ls --format ids', 'only the references']
    ]
  },
  du: {
    text: 'ALONE is what removing it gives back; SHARED is what other models need as well.',
    examples: [['svc du qwen/qwen3-0.6b-gguf', 'one repository']]
  },
  show: { examples: [['svc show qwen/qwen3-0.6b-gguf:q8_0', '']] },
  path: {
    examples: [
      ['llama-cli -m "$(svc path qwen/qwen3-0.6b-gguf)"', 'load it'],
      ["svc path 'acme/vision:q8_0#mmproj'", 'the projector beside the weights'],
      ['svc path --dir acme/model:bf16', 'the folder, for transformers and others']
    ]
  },
  view: {
    examples: [
      ['svc view acme/model:bf16 ./model', 'links in ./model'],
      ['svc view acme/model:bf16 ./cache --layout hf', 'a hub cache'],
      ['svc view --rm ./model', 'remove it again']
    ]
  },
  exec: {
    text: 'In the words of the command {} is the path of the weights, {dir} that of the folder. Its exit code becomes that of svc.',
    examples: [['svc exec qwen/qwen3-0.6b-gguf -- llama-server -m {} --port 8080', '']]
  },
  cat: {
    examples: [
      ["svc cat 'acme/model:q8_0#chat_template.jinja'", 'a file by its name'],
      ['svc cat acme/model:q8_0 --range 0-3', 'the first four bytes of the weights']
    ]
  },
  resolve: { examples: [['svc resolve -q acme/model:q8_0', 'the digest of its manifest']] },
  rm: {
    text: 'The space comes back with svc gc. What another name, a tag or a view still needs stays.',
    examples: [
      ['svc rm acme/model:q8_0', 'one quant'],
      ['svc rm acme/model', 'all of them']
    ]
  },
  gc: {
    examples: [
      ['svc gc --dry-run', 'what it would give back'],
      ['svc gc', 'now']
    ]
  },
  verify: {
    text: 'Damaged files are moved aside, and the models that they belong to are named, with the way to mend them. svc fsck is svc verify all.',
    examples: [
      ['svc verify', 'the whole store'],
      ['svc verify acme/model:q8_0', 'one model']
    ]
  },
  fsck: { text: 'The same as svc verify all.', examples: [] },
  pull: {
    text: 'Peers are asked first, then the hub, if the model came from there. It goes on in the daemon when you press Ctrl-C; svc cancel ends it.',
    examples: [
      ['svc pull acme/model:q8_0', ''],
      ['svc pull acme/model:q8_0 --wait 10m', 'give peers more time']
    ]
  },
  jobs: {
    text: 'An id can be cut short, as long as it is clear which job is meant.',
    examples: [
      ['svc jobs', 'all'],
      ['svc jobs --follow', 'watch the newest that runs']
    ]
  },
  cancel: { examples: [['svc cancel 3579b0e8', '']] },
  share: {
    text: 'It is announced at once. The command that is printed works on any machine that reaches this one and runs svcd.',
    examples: [['svc share acme/model:q8_0', '']]
  },
  private: {
    examples: [
      ['svc private acme/model:q8_0', 'nobody gets it'],
      ['svc private acme/model:q8_0 --off', 'others may have it again']
    ]
  },
  status: { examples: [] },
  swarm: { examples: [] },
  adopt: {
    examples: [
      ['svc adopt --dry-run', 'what other tools hold'],
      ['svc adopt hf', 'take over the hub cache'],
      ['svc adopt /data/models', 'a folder of model files']
    ]
  },
  'service install': { examples: [['svc service install --dry-run', 'show what it does']] },
  'service remove': { examples: [] },
  'service status': { examples: [] },
  move: { examples: [['svc move /mnt/big/models', '']] },
  doctor: { examples: [] },
  completion: { examples: [['source <(svc completion bash)', 'in ~/.bashrc']] },
  help: { examples: [['svc help import hf', '']] }
}

/** Text and examples of a command, for its help and the man page. */
export const moreOf = (words: string): More => MORE[words] ?? { examples: [] }

const REF_TEXT =
  'REF is a model: ns/name:quant, in any case; ns/name when it has one quant here; a unique beginning of the quant will do.'

function belowOptions(command: Command, words: string): string {
  const { text, examples } = moreOf(words)
  const parts: string[] = []
  const takesRef = command.registeredArguments.some((argument) => /^(ref|target)$/.test(argument.name()))
  if (takesRef) parts.push(REF_TEXT)
  if (text !== undefined) parts.push(text)
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, does]) => `  ${line.padEnd(width)}  ${does}`.trimEnd())
  const help = new Help()
  const columns = Math.min(command.configureOutput().getOutHelpWidth?.() ?? 80, 100)
  const wrapped = parts.map((part) => help.boxWrap(part, columns))
  if (lines.length > 0) wrapped.push(`Examples:\n${lines.join('\n')}`)
  return wrapped.map((part) => `\n${part}`).join('\n')
}

/** The commands on the first page, grouped by purpose. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Bring models in:': ['import', 'catalog', 'adopt', 'pull'],
  'Load them:': ['path', 'view', 'exec'],
  'Look:': ['ls', 'show', 'du', 'cat', 'resolve'],
  'Remove:': ['rm', 'gc'],
  'Share:': ['share', 'private', 'swarm', 'export', 'push', 'publish'],
  'Keep it well:': ['status', 'jobs', 'cancel', 'verify', 'fsck', 'doctor', 'service', 'move', 'completion', 'help']
}

const groupOf = (name: string): string | undefined =>
  Object.keys(GROUPS).find((heading) => GROUPS[heading]!.includes(name))

/**
 * Formats the help page of every command: adds the texts above, omits `[options]` in lists, and says after a mistake
 * where to read more.
 */
export function dressHelp(command: Command, words = ''): void {
  command.helpCommand(false).configureHelp({
    subcommandTerm: (inner) => [inner.name(), ...inner.registeredArguments.map(argumentTerm)].join(' '),
    commandDescription: (of) => sentence(of.description()),
    groupItems(...items) {
      const groups = Help.prototype.groupItems.apply(this, items as never)
      const common = groups.get(COMMON_OPTIONS)
      // the options common to all pages come last
      if (common !== undefined && groups.delete(COMMON_OPTIONS)) groups.set(COMMON_OPTIONS, common)
      return groups as never
    }
  })
  if (words !== '') {
    command.showHelpAfterError(`  hint: svc help ${words}`)
    if (command.commands.length === 0) command.addHelpText('after', () => belowOptions(command, words))
  } else command.showHelpAfterError('  hint: svc help')
  if (words !== '' && !words.includes(' ')) command.helpGroup(groupOf(words) ?? 'Commands:')
  for (const inner of command.commands) dressHelp(inner, `${words} ${inner.name()}`.trimStart())
}

const sentence = (text: string): string =>
  text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

function argumentTerm(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}
