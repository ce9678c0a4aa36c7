import { type Command, Help } from 'commander'

export const COMMON_OPTIONS = 'Options of every command:'

/** The text below the options of a help page, then examples. Keys are the words after `svc`. */
interface More {
  readonly text?: string
  readonly examples: readonly (readonly [line: string, explanation: string])[]
}

const MORE: Readonly<Record<string, More>> = {
  'import local': {
    text: 'Imports every quant it finds, unless --quant or --file selects some. The first import asks whether to share your own models with others; where nobody answers, they are shared unless --private, or seed_local = false below [swarm], says otherwise.',
    examples: [
      ['svc import local ./model-q8_0.gguf --as me/model', 'one file'],
      ['svc import local ./my-model --as me/model --private', 'a folder, not shared']
    ]
  },
  'import hf': {
    text: 'If a repository has several quants and you name none, svc lists them with their sizes and asks. Gated and private repositories need a token: svc login hf.',
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
    text: 'svc downloads the files from a swarm that the catalog lists, and verifies them against the digests of the hub. To use another catalog, set [catalog] endpoint in the configuration.',
    examples: [
      ['svc catalog search qwen', 'find a model'],
      ['svc import catalog Qwen/Qwen3-0.6B-GGUF:q8_0', 'import it']
    ]
  },
  'import oci': {
    text: 'svc reads an existing path as an OCI layout, and anything else as an artifact in a registry. It uses the login of docker, podman or oras. It takes names from what you packed yourself; the names in anything else are claims.',
    examples: [
      ['svc import oci ./models.tar --as acme/model', 'what svc export oci wrote elsewhere'],
      ['svc import oci registry.example/team/model:q4_k_m --as team/model', 'from a registry']
    ]
  },
  'export oci': {
    text: 'To resume after an interruption, run the same command again.',
    examples: [
      ['svc export oci acme/model:q8_0 ./models.tar', 'one file, to carry elsewhere'],
      ['svc export oci acme/model:q8_0 acme/model:q4_k_m ./layout', 'a folder; more can be added later']
    ]
  },
  push: {
    text: 'Uses the login of docker, podman or oras. Skips blobs that the registry already has.',
    examples: [['svc push acme/model:q8_0 registry.example/team/model', 'the tag is the quant']]
  },
  publish: {
    text: 'The destination becomes a webseed: svc import bt and other BitTorrent v2 clients download from it. Skips files that are already there; to resume after an interruption, run the same command again. Credentials for buckets come from the environment or ~/.aws, as with the AWS tools.',
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
    text: 'SHARED is "yes" if the model is shared now, "not yet" if sharing begins at the next start of the daemon (svc share begins it at once), "private" or "held back" if it is not shared.',
    examples: [
      ['svc ls qwen', 'models whose name contains it'],
      ["svc ls --filter 'size>10GB' --filter 'used>30d' --sort size", 'large ones, unused for a month'],
      ['svc ls --format ids', 'only the references']
    ]
  },
  du: {
    text: 'ALONE is the space that removing the model frees; SHARED is the space that other models need as well.',
    examples: [['svc du qwen/qwen3-0.6b-gguf', 'one repository']]
  },
  path: {
    examples: [
      ['llama-cli -m "$(svc path qwen/qwen3-0.6b-gguf)"', 'load it'],
      ["svc path 'acme/vision:q8_0#mmproj'", 'the projector beside the weights; #draft is the draft head'],
      ['svc path --dir acme/model:bf16', 'the folder, for transformers and others']
    ]
  },
  view: {
    examples: [
      ['svc view acme/model:bf16 ./model', 'links in ./model'],
      ['svc view acme/model:bf16 ./cache --layout hf', 'a hub cache'],
      ['svc view --rm ./model', 'remove it again'],
      ['svc view add ollama', 'Ollama lists every model here from now on'],
      ['svc view --rm ./cache acme/model:bf16', 'remove one model of a hub cache']
    ]
  },
  exec: {
    text: 'In the arguments, {} stands for the path of the weights, {mmproj} for that of the projector, {draft} for that of the draft head, and {dir} for the folder. svc exits with the exit code of the command.',
    examples: [['svc exec qwen/qwen3-0.6b-gguf -- llama-server -m {} --port 8080', '']]
  },
  run: {
    text: 'Imports the model from the hub if it is not here. Passes the projector, the draft head, and the longest context that fits this machine, at most 32768 tokens; the arguments after -- come last, and win. Prints the command that it runs, and exits with its exit code. For other programs: svc exec, svc path.',
    examples: [
      ['svc run qwen/qwen3-0.6b-gguf', 'the first runtime that is installed'],
      ['svc run qwen/qwen3-0.6b-gguf --with llama-cli -- -p Hello', 'another one, with arguments']
    ]
  },
  show: {
    text: 'With hf: lists the quants of a hub repository, and shows which are here and which fit this machine. Memory is for one sequence: weights, KV cache (f16) and an estimate of the compute buffer.',
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
  ps: {
    text: 'Programs are those of this user that have files of the store open (on Linux); svc run and svc exec hold a model while they run.',
    examples: [['svc ps', '']]
  },
  resolve: { examples: [['svc resolve -q acme/model:q8_0', 'the digest of its manifest']] },
  rm: {
    text: 'svc gc then frees the space. Files that another name, a tag or a view needs stay.',
    examples: [
      ['svc rm acme/model:q8_0', 'one quant'],
      ['svc rm acme/model', 'all of them']
    ]
  },
  mv: {
    text: 'With ns/name, all quants and the tags move. The files stay where they are: a name takes no space.',
    examples: [
      ['svc mv acme/model-7b-gguf me/model', 'into another namespace'],
      ['svc mv acme/model:q8_0 large', 'one quant, in the same namespace']
    ]
  },
  cp: {
    text: 'Both names stay until svc rm removes one. A second name takes no space.',
    examples: [['svc cp acme/model-7b-gguf me/model', '']]
  },
  gc: {
    examples: [
      ['svc gc --dry-run', 'how much it would free'],
      ['svc gc', 'free it'],
      ['svc gc --older-than 30d', 'and the older versions that upgrades kept']
    ]
  },
  evict: {
    text: 'First asks the hub or the other sources of the model whether they still have the same bytes. svc ls then shows the model as away; svc pull, svc path, svc view and svc exec fetch it again.',
    examples: [['svc evict acme/model:q8_0', '']]
  },
  pin: {
    text: 'Neither a quota nor svc evict frees the bytes of a pinned model.',
    examples: [['svc pin acme/model:q8_0', '']]
  },
  unpin: { examples: [['svc unpin acme/model:q8_0', '']] },
  verify: {
    text: 'Quarantines damaged files, lists the affected models, and says how to repair them. svc fsck is the same as svc verify all.',
    examples: [
      ['svc verify', 'the whole store'],
      ['svc verify acme/model:q8_0', 'one model']
    ]
  },
  pull: {
    text: 'Asks the hub first if the model came from there, then peers. The daemon continues after Ctrl-C; svc cancel stops the job.',
    examples: [
      ['svc pull acme/model:q8_0', ''],
      ['svc pull acme/model:q8_0 --wait 10m', 'give peers more time']
    ]
  },
  search: {
    text: 'Lists the most downloaded first. Sends the words to the hub, with the token if there is one.',
    examples: [
      ['svc search qwen3 --gguf --size -8B', 'GGUF models of up to 8 billion parameters'],
      ['svc search qwen3 --here', 'without a network']
    ]
  },
  outdated: {
    text: 'Checks the branch or tag that the import followed; an import by commit is pinned. The exit code is 0 even if there are newer commits. With [hub] check = "daily" the daemon checks by itself, and svc ls shows the result.',
    examples: [
      ['svc outdated', 'all models'],
      ['svc outdated -q', 'only the names of models with newer commits']
    ]
  },
  upgrade: {
    text: 'Fetches only files that are not here. The older version stays as ns/name:before-<date>+quant until svc gc --older-than, or svc rm --tags.',
    examples: [
      ['svc upgrade --all --dry-run', 'what it would fetch'],
      ['svc upgrade acme/model:q8_0', 'one model']
    ]
  },
  companions: {
    text: 'Fetches generation_config.json, modules.json, README and the like at the commit of the model, but no weights. Imports normally fetch them as well.',
    examples: [['svc companions acme/model:bf16', '']]
  },
  jobs: {
    text: 'An id can be abbreviated as long as it is unique.',
    examples: [
      ['svc jobs', 'all'],
      ['svc jobs --follow', 'follow the newest running job']
    ]
  },
  resume: {
    text: 'Bytes that were verified are not fetched again.',
    examples: [
      ['svc resume', 'everything that was interrupted'],
      ['svc resume 3579b0e8', 'one job']
    ]
  },
  cancel: { examples: [['svc cancel 3579b0e8', '']] },
  share: {
    text: 'Announces the model at once. The printed command works on any machine that can reach this one and runs svcd.',
    examples: [['svc share acme/model:q8_0', '']]
  },
  private: {
    examples: [
      ['svc private acme/model:q8_0', 'stop sharing it'],
      ['svc private acme/model:q8_0 --off', 'share it again']
    ]
  },
  why: {
    text: 'Shows the origin of the model, the credential that fetched it, your own decision, and when the hub last confirmed that the model is public.',
    examples: [['svc why acme/model:q8_0', '']]
  },
  'verify-signature': {
    text: 'Lists the files that the signature covers, ignores and omits. Fails if a file is changed, missing or not signed. Downloads nothing. A signature says who vouches for the files, not that the model is harmless.',
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
    text: 'What a tool downloaded is withheld from others until the hub, asked without a token, lists the same files for everybody; svc why says so, and svc private REF --off shares it anyway. At a terminal svc asks once whether to share; where nobody answers, the models are private.',
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
    text: 'Asks for the token without showing it, or reads it from standard input. Asks the hub whose it is, and stores it in the file of the hub client (HF_TOKEN_PATH, HF_HOME), which other programs read as well.',
    examples: [
      ['svc login hf', ''],
      ['svc login hf < token.txt', 'without a prompt']
    ]
  },
  logout: { examples: [['svc logout hf', '']] },
  move: { examples: [['svc move /mnt/big/models', '']] },
  ui: {
    text: 'Prints a link, and opens it if there is a desktop. The link works once; whoever opens it first can do everything that svc can. Over ssh, it also prints the command that forwards the port.',
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
