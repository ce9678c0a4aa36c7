import { type Command, Help } from 'commander'

export const COMMON_OPTIONS = 'Options of every command:'

/** The text below the options of a help page, then examples. Keys are the words after `svc`. */
interface More {
  readonly text?: string
  readonly examples: readonly (readonly [line: string, explanation: string])[]
}

const MORE: Readonly<Record<string, More>> = {
  'import local': {
    text: 'Imports every quant found, unless --quant or --file select some. The first import asks whether to share models of your own with others.',
    examples: [
      ['svc import local ./model-q8_0.gguf --as me/model', 'one file'],
      ['svc import local ./my-model --as me/model --private', 'a folder, not shared with anybody']
    ]
  },
  'import hf': {
    text: 'If a repository has several quants and none is named, svc lists them with their sizes and asks. Gated and private repositories need a token: svc login hf.',
    examples: [
      ['svc import hf Qwen/Qwen3-0.6B-GGUF:Q8_0', 'one quant'],
      ['svc import hf Qwen/Qwen3-0.6B-GGUF:q4_k_m,q8_0', 'two; case does not matter'],
      ['svc import hf Qwen/Qwen3-0.6B-GGUF --dry-run', 'only list what it would import']
    ]
  },
  'import bt': {
    text: 'svc share REF on the other machine prints this command in full.',
    examples: [["svc import bt 'magnet:?xt=…' --pin sha256:… --as me/model", '']]
  },
  'import catalog': {
    text: 'The files come from a BitTorrent swarm that the catalog lists, and are verified against the digests of the hub. [catalog] endpoint in the configuration sets the catalog.',
    examples: [
      ['svc catalog search qwen', 'find a model'],
      ['svc import catalog Qwen/Qwen3-0.6B-GGUF:q8_0', 'import it']
    ]
  },
  'import oci': {
    text: 'A path that exists is read as an OCI layout; anything else names an artifact in a registry, with the login of docker, podman or oras.',
    examples: [
      ['svc import oci ./models.tar', 'what svc export oci wrote'],
      ['svc import oci registry.example/team/model:q4_k_m', 'from a registry'],
      ['svc import oci registry.example/team/other:1 --as team/other', 'what another tool packed']
    ]
  },
  'export oci': {
    text: 'If it is interrupted, run the same command again to resume.',
    examples: [
      ['svc export oci acme/model:q8_0 ./models.tar', 'one file, to carry elsewhere'],
      ['svc export oci acme/model:q8_0 acme/model:q4_k_m ./layout', 'a folder; more can be added later']
    ]
  },
  push: {
    text: 'Uses the login of docker, podman or oras. Skips what the registry already has.',
    examples: [['svc push acme/model:q8_0 registry.example/team/model', 'the tag is the quant']]
  },
  publish: {
    text: 'The destination becomes a webseed: svc import bt and other BitTorrent v2 clients download from it. Skips what is already there; if it is interrupted, run the same command again to resume. Credentials for buckets come from the environment or ~/.aws, as with the AWS tools.',
    examples: [
      [
        'svc publish acme/model:q8_0 /srv/www/models --url https://models.example/',
        'a folder that a web server serves'
      ],
      ['svc publish acme/model:q8_0 acme/model:q4_k_m s3://bucket/models', 'a bucket'],
      ['svc publish acme/model:q8_0 s3://bucket --endpoint https://s3.example', 'an S3-compatible store']
    ]
  },
  'catalog search': { examples: [['svc catalog search llama 8b', '']] },
  ls: {
    text: 'SHARED is "yes" for what is shared now, "not yet" for what will be from the next start of the daemon (or at once with svc share), "private" or "held back" for what is not shared.',
    examples: [
      ['svc ls qwen', 'models whose name contains it'],
      ["svc ls --filter 'size>10GB' --filter 'used>30d' --sort size", 'large ones, unused for a month'],
      ['svc ls --format ids', 'only the references']
    ]
  },
  du: {
    text: 'ALONE is the space that removing it frees; SHARED is what other models need as well.',
    examples: [['svc du qwen/qwen3-0.6b-gguf', 'one repository']]
  },
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
      ['svc view --rm ./model', 'remove it again'],
      ['svc view --rm ./cache acme/model:bf16', 'remove one model of a hub cache']
    ]
  },
  exec: {
    text: 'In the arguments, {} stands for the path of the weights, {mmproj} for that of the projector, and {dir} for the folder. svc exits with the exit code of the command.',
    examples: [['svc exec qwen/qwen3-0.6b-gguf -- llama-server -m {} --port 8080', '']]
  },
  show: {
    text: 'With hf: what a repository of the hub contains, what of it is here, and whether it fits this machine. Memory covers the weights, the cache (f16) and an estimate of the compute buffer, for one sequence.',
    examples: [
      ['svc show acme/model:q8_0', 'a model that is here'],
      ['svc show hf Qwen/Qwen3-0.6B-GGUF --context 8192', 'before it is imported']
    ]
  },
  cat: {
    examples: [
      ["svc cat 'acme/model:q8_0#chat_template.jinja'", 'a file by its name'],
      ['svc cat acme/model:q8_0 --range 0-3', 'the first four bytes of the weights']
    ]
  },
  resolve: { examples: [['svc resolve -q acme/model:q8_0', 'the digest of its manifest']] },
  rm: {
    text: 'svc gc then frees the space. What another name, a tag or a view still needs stays.',
    examples: [
      ['svc rm acme/model:q8_0', 'one quant'],
      ['svc rm acme/model', 'all of them']
    ]
  },
  gc: {
    examples: [
      ['svc gc --dry-run', 'how much it would free'],
      ['svc gc', 'free it'],
      ['svc gc --older-than 30d', 'and the older versions that upgrades kept']
    ]
  },
  evict: {
    text: 'First asks the hub, or the other sources of the model, whether they still have the same bytes. svc ls then shows the model as away; svc pull, svc path, svc view and svc exec fetch it again.',
    examples: [['svc evict acme/model:q8_0', '']]
  },
  pin: {
    text: 'Neither a quota nor svc evict frees the bytes of a pinned model.',
    examples: [['svc pin acme/model:q8_0', '']]
  },
  unpin: { examples: [['svc unpin acme/model:q8_0', '']] },
  verify: {
    text: 'Moves damaged files aside, and lists the affected models and how to repair them. svc fsck is the same as svc verify all.',
    examples: [
      ['svc verify', 'the whole store'],
      ['svc verify acme/model:q8_0', 'one model']
    ]
  },
  pull: {
    text: 'Asks the hub if the model came from there, then peers. Continues in the daemon after Ctrl-C; svc cancel stops it.',
    examples: [
      ['svc pull acme/model:q8_0', ''],
      ['svc pull acme/model:q8_0 --wait 10m', 'give peers more time']
    ]
  },
  search: {
    text: 'Lists the most downloaded first. Sends the words to the hub, with the token if there is one.',
    examples: [
      ['svc search qwen3 --gguf --size -8B', 'what llama.cpp loads, up to 8 billion parameters'],
      ['svc search qwen3 --here', 'without a network']
    ]
  },
  outdated: {
    text: 'Asks about the branch or tag that an import followed; an import by its commit is pinned. The exit code is 0 even if there are newer ones. With [hub] check = "daily" the daemon asks on its own, and svc ls shows the result.',
    examples: [
      ['svc outdated', 'all models'],
      ['svc outdated -q', 'only the names of those that are newer']
    ]
  },
  upgrade: {
    text: 'Fetches only what is not here. The older version stays as ns/name:before-<date>+quant until svc gc --older-than, or svc rm --tags.',
    examples: [
      ['svc upgrade --all --dry-run', 'what it would fetch'],
      ['svc upgrade acme/model:q8_0', 'one model']
    ]
  },
  companions: {
    text: 'Fetches generation_config.json, modules.json, README and the like at the commit of the model, but no weights. An import fetches these files, too.',
    examples: [['svc companions acme/model:bf16', '']]
  },
  jobs: {
    text: 'An id can be abbreviated as long as it is unique.',
    examples: [
      ['svc jobs', 'all'],
      ['svc jobs --follow', 'follow the newest running job']
    ]
  },
  cancel: { examples: [['svc cancel 3579b0e8', '']] },
  share: {
    text: 'Announces it at once. The printed command works on any machine that can reach this one and runs svcd.',
    examples: [['svc share acme/model:q8_0', '']]
  },
  private: {
    examples: [
      ['svc private acme/model:q8_0', 'stop sharing it'],
      ['svc private acme/model:q8_0 --off', 'share it again']
    ]
  },
  why: {
    text: 'Shows the origin of the model, the credential that fetched it, what its owner decided, and when the hub last confirmed that it is public.',
    examples: [['svc why acme/model:q8_0', '']]
  },
  'verify-signature': {
    text: 'Lists the files that the signature covers, ignores and lacks. Fails if a file is changed, missing or not signed. Fetches nothing. A signature says who vouches for the files, not that the model is harmless.',
    examples: [
      ['svc verify-signature acme/model:bf16 --key acme.pub', ''],
      [
        'svc verify-signature acme/model --root trusted_root.json --issuer https://accounts.example.com --subject release@acme.example',
        ''
      ]
    ]
  },
  sign: {
    text: 'Signs with a key or a certificate. For keyless signing, which needs an issuer on the internet, use another tool.',
    examples: [['svc sign acme/model:bf16 --key acme.key --output model.sig', '']]
  },
  adopt: {
    examples: [
      ['svc adopt --dry-run', 'list the models of other tools'],
      ['svc adopt hf', 'import the hub cache'],
      ['svc adopt /data/models', 'a folder of model files']
    ]
  },
  'service install': { examples: [['svc service install --dry-run', 'show what it would do']] },
  backup: {
    examples: [
      ['svc backup /mnt/backup/models', 'a folder; run it again to add what is new'],
      ['svc backup s3://bucket/models --prune', 'a bucket; only the latest snapshot stays']
    ]
  },
  restore: { examples: [['svc restore /mnt/backup/models --root /mnt/new/models', '']] },
  login: {
    text: 'Asks for the token without showing it, or reads it from standard input. It is kept in the file of the hub client (HF_TOKEN_PATH, HF_HOME), which other programs read as well.',
    examples: [
      ['svc login hf', ''],
      ['svc login hf < token.txt', 'without being asked']
    ]
  },
  logout: { examples: [['svc logout hf', '']] },
  move: { examples: [['svc move /mnt/big/models', '']] },
  ui: {
    text: 'Prints a link, and opens it if there is a desktop. The link works once; anyone who opens it first may do what svc may. Over ssh, also prints the command that forwards the port.',
    examples: [
      ['svc ui', ''],
      ['svc ui --no-open --port 8765', 'on another machine']
    ]
  },
  completion: { examples: [['source <(svc completion bash)', 'in ~/.bashrc']] },
  help: { examples: [['svc help import hf', '']] }
}

/** Text and examples of a command, for its help and the man page. */
export const moreOf = (words: string): More => MORE[words] ?? { examples: [] }

const REF_TEXT =
  'REF is a model: ns/name:quant, case-insensitive; ns/name if it has one quant here; a unique prefix of the quant is enough.'

function belowOptions(command: Command, words: string): string {
  const { text, examples } = moreOf(words)
  const parts: string[] = []
  const takesRef = command.registeredArguments.some((argument) => /^(ref|target)$/.test(argument.name()))
  if (takesRef) parts.push(REF_TEXT)
  if (text !== undefined) parts.push(text)
  const width = Math.max(...examples.map(([line]) => line.length))
  const lines = examples.map(([line, explanation]) => `  ${line.padEnd(width)}  ${explanation}`.trimEnd())
  const help = new Help()
  const columns = Math.min(command.configureOutput().getOutHelpWidth?.() ?? 80, 100)
  const wrapped = parts.map((part) => help.boxWrap(part, columns))
  if (lines.length > 0) wrapped.push(`Examples:\n${lines.join('\n')}`)
  return wrapped.map((part) => `\n${part}`).join('\n')
}

/** Formats every help page: adds the texts above, omits `[options]` in lists, and says after a mistake where to read more. */
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
  for (const inner of command.commands) dressHelp(inner, `${words} ${inner.name()}`.trimStart())
}

const sentence = (text: string): string =>
  text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

function argumentTerm(argument: Command['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}
