import { compareText } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import { formatsIn, PIECE } from './file-formats.ts'
import { withForms } from './forms.ts'
import { withOwnQuants } from './members.ts'
import { baseOf, checkEntryName, checkNames, folderOf, isReservedName, sortedByName } from './names.ts'
import { opaqueListing } from './opaque.ts'
import { ggufQuant, normalizedQuant, projectorVariant, stemOf } from './quant.ts'
import { ggufNameOf, roleOfName } from './roles.ts'
import { isAdapter, isWeights } from './selection.ts'
import { brokenSets, parseShardName, type Shard, shardFromZero, shardOf } from './shards.ts'
import { type AuxRole, type Outcome, outcomeOf, type SkipReason } from './table.ts'
import { planTar } from './tar.ts'
import type {
  EntryKind,
  FileUse,
  ListedFile,
  ManifestEntry,
  NamesRead,
  Recognition,
  TarMember,
  Warning
} from './types.ts'

type Match<K extends Outcome['is']> = { readonly file: ListedFile; readonly outcome: Extract<Outcome, { is: K }> }

/**
 * Recognizes a listing by names alone (spec rec.2, rec.5): which file becomes which manifest entry, which are staged,
 * which are skipped and why. Pure, and independent of the listing's order.
 *
 * Files that would lie below a name used by sealing (`manifest/…`, `tokenizer.tar/…`) are skipped with a warning.
 * @param names `normalized`: the names are those of `normalizedNames`, and the rules for them apply (spec rec.26, rec.27); `opaque`:
 *   no row applies (spec rec.32)
 * @throws ClassifyError `E_BAD_NAME` (see `checkNames`; also for a size that is not an integer ≥ 0), `E_TAR_LIMIT` when a
 *   tokenizer or adapter file does not fit in its tar.
 */
export function recognize(listing: Iterable<ListedFile>, names: NamesRead = 'upstream'): Recognition {
  const files = sortedByName(listing)
  checkNames(files.map((file) => file.name))
  for (const { name, sizeBytes } of files) {
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
      throw new ClassifyError(
        'E_BAD_NAME',
        `the size of ${JSON.stringify(name)} is not a count of bytes: ${sizeBytes}`,
        { name, reason: 'size' }
      )
  }
  if (names === 'opaque') return opaqueListing(files)
  const work = new Recognizer(names)
  for (const file of files) work.match(file)
  return work.finish()
}

class Recognizer {
  readonly #uses = new Map<string, FileUse>()
  readonly #entries: ManifestEntry[] = []
  readonly #warnings: Warning[] = []
  readonly #adapters: Match<'adapter'>[] = []
  readonly #templates: Match<'chat-template'>[] = []
  readonly #tokenizer: ListedFile[] = []
  readonly #licences: (ListedFile & { detect: boolean })[] = []
  readonly #shards: Shard[] = []
  readonly #names: NamesRead
  #config: ListedFile | undefined

  constructor(names: NamesRead) {
    this.#names = names
  }

  match(file: ListedFile): void {
    const outcome = this.#names === 'normalized' ? normalizedOutcomeOf(file) : outcomeOf(file.name)
    if (outcome.is !== 'skip' && outcome.is !== 'licence' && isReservedName(file.name)) {
      this.#skip(file.name, 'reserved-name')
      this.#warn(
        'reserved-name',
        [file.name],
        `${file.name} was skipped: that name is reserved for the artifact's own documents; rename the folder at its source`
      )
      return
    }
    switch (outcome.is) {
      case 'skip':
        this.#skip(file.name, outcome.reason)
        if (outcome.reason === 'non-lora-trainables')
          this.#warn(
            'non-lora-trainables',
            [file.name],
            `${file.name} was skipped: it contains trained weights that are not adapter tensors, and an artifact cannot contain ` +
              `it; the adapter beside it may be incomplete`
          )
        if (outcome.reason === 'split-file')
          this.#warn('split-file', [file.name], `${file.name} was skipped: it ${PIECE_ADVICE}`)
        return
      case 'adapter':
        this.#adapters.push({ file, outcome })
        return
      case 'aux':
        return this.#addAux(file, outcome.role)
      case 'weights':
        return this.#addWeights(file, outcome.format)
      case 'tokenizer':
        this.#tokenizer.push(file)
        return
      case 'chat-template':
        this.#templates.push({ file, outcome })
        return
      case 'code':
        return this.#add({ ...fileEntry('code', file), role: outcome.role })
      case 'config':
        this.#config = file
        this.#uses.set(file.name, { use: 'config' })
        return
      case 'licence':
        this.#licences.push({ name: file.name, sizeBytes: file.sizeBytes, detect: outcome.detect })
        this.#uses.set(file.name, { use: 'licence', detect: outcome.detect })
    }
  }

  finish(): Recognition {
    if (this.#names === 'normalized') this.#countFromZero()
    this.#warnBrokenSets()
    if (this.#names === 'upstream') this.#warnConsolidated()
    this.#addTokenizer()
    this.#addChatTemplate()
    this.#addAdapters()
    const entries = this.#entries.sort(byManifestOrder)
    return {
      names: this.#names,
      entries:
        this.#names === 'normalized' ? withForms(withOwnQuants(entries), (name) => this.#uses.has(name)) : entries,
      uses: new Map([...this.#uses].sort(([a], [b]) => compareText(a, b))),
      skipped: [...this.#uses]
        .flatMap(([name, use]) => (use.use === 'skip' ? [{ name, reason: use.reason }] : []))
        .sort((a, b) => compareText(a.name, b.name)),
      warnings: this.#warnings,
      config: this.#config,
      licences: this.#licences
    }
  }

  #add(entry: ManifestEntry): void {
    checkEntryName(entry.name)
    this.#entries.push(entry)
    if (entry.content.from === 'file') this.#uses.set(entry.content.name, { use: 'entry', entry: entry.name })
    else for (const member of entry.content.members) this.#uses.set(member.from, { use: 'member', entry: entry.name })
  }

  #skip(name: string, reason: SkipReason): void {
    this.#uses.set(name, { use: 'skip', reason })
  }

  #warn(code: Warning['code'], names: readonly string[], message: string): void {
    this.#warnings.push({ code, names, message })
  }

  #addAux(file: ListedFile, role: AuxRole): void {
    const isGguf = role === 'draft' || role === 'adapter'
    const variant = isGguf || role === 'vision-projector' ? projectorVariant(file.name) : undefined
    this.#add({ ...fileEntry('weights.aux', file), role, ...(variant === undefined ? {} : { variant }) })
  }

  #addWeights(file: ListedFile, format: 'gguf' | 'safetensors'): void {
    const shard = shardOf(file.name)
    if (shard) this.#shards.push(shard)
    else if (parseShardName(file.name.replace(/\.[^.]*$/, '')))
      this.#warn(
        'shard-numbering',
        [file.name],
        `${file.name} is numbered like a part of a set, but its number is not between 1 and the total; it is kept as a separate file`
      )
    this.#add({
      ...fileEntry(`weights.${format}`, file),
      ...(shard ? { part: shard.part, group: shard.group } : {}),
      ...(format === 'gguf' ? { quant: this.#quantOf(file.name) } : {})
    })
  }

  #quantOf(name: string): string {
    return this.#names === 'normalized' ? normalizedQuant(name) : ggufQuant(name)
  }

  /** Sets whose parts are counted from 0 are whole sets, too (spec rec.31). */
  #countFromZero(): void {
    const numbered = this.#entries.flatMap((entry, at) => {
      const shard = isWeights(entry) ? shardFromZero(entry.name) : undefined
      return shard === undefined ? [] : [{ at, shard }]
    })
    for (const set of Map.groupBy(numbered, ({ shard }) => shard.group).values()) {
      if (!set.some(({ shard }) => shard.part === 0) || set.some(({ shard }) => shard.part === shard.total)) continue
      const names = new Set(set.map(({ shard }) => shard.name))
      for (const { at, shard } of set)
        this.#entries[at] = { ...this.#entries[at]!, part: shard.part + 1, group: shard.group }
      const others = this.#shards.filter(({ name }) => !names.has(name))
      this.#shards.splice(
        0,
        this.#shards.length,
        ...others,
        ...set.map(({ shard }) => ({ ...shard, part: shard.part + 1 }))
      )
      const isOfSet = ({ code, names: [name] }: Warning): boolean => code === 'shard-numbering' && names.has(name!)
      this.#warnings.splice(0, this.#warnings.length, ...this.#warnings.filter((warning) => !isOfSet(warning)))
    }
  }

  #warnBrokenSets(): void {
    for (const { group, names, missing, repeated } of brokenSets(this.#shards)) {
      const what = [
        missing && `parts ${missing} are missing`,
        repeated.length > 0 && `parts ${repeated.slice(0, 20).join(', ')} exist twice`
      ]
      this.#warn(
        'incomplete-shards',
        names,
        `the weights ${group.replace(/\*(\d+)(\.\w+)$/, ' (of $1)$2')} are incomplete: ${what.filter(Boolean).join('; ')}`
      )
    }
  }

  /** Some repositories contain the same model in two layouts; both are weights. */
  #warnConsolidated(): void {
    const stem = (entry: ManifestEntry): string => baseOf(entry.name).replace(/\.safetensors$/, '')
    const weights = this.#entries.filter((entry) => entry.kind === 'weights.safetensors')
    const isNamed = (entry: ManifestEntry, base: string): boolean =>
      (parseShardName(stem(entry))?.base ?? stem(entry)) === base
    const models = new Set(weights.filter((entry) => isNamed(entry, 'model')).map((entry) => folderOf(entry.name)))
    const names = weights
      .filter((entry) => isNamed(entry, 'consolidated') && models.has(folderOf(entry.name)))
      .map((entry) => entry.name)
    if (names.length > 0)
      this.#warn(
        'same-model-twice',
        names,
        `${names[0]} is beside model*.safetensors: the artifact probably contains the same model twice`
      )
  }

  #addTokenizer(): void {
    if (this.#tokenizer.length > 0) this.#add(tarEntry('tokenizer', 'tokenizer.tar', this.#tokenizer, (name) => name))
  }

  /** Prefers `.jinja` over `.json` over the bare name; then the one nearest to the root. */
  #addChatTemplate(): void {
    const depth = (match: Match<'chat-template'>): number => match.file.name.split('/').length
    const [winner, ...others] = this.#templates.sort(
      (a, b) => a.outcome.rank - b.outcome.rank || depth(a) - depth(b) || compareText(a.file.name, b.file.name)
    )
    if (!winner) return
    this.#add(fileEntry('chat-template', winner.file))
    for (const file of sortedByName(others.map((other) => other.file))) {
      this.#skip(file.name, 'chat-template-superseded')
      this.#warn(
        'chat-template-superseded',
        [file.name],
        `${file.name} was skipped: an artifact has one chat template, and ${winner.file.name} takes precedence`
      )
    }
  }

  #addAdapters(): void {
    const byFolder = Map.groupBy(this.#adapters, ({ file }) => folderOf(file.name))
    for (const [folder, halves] of [...byFolder].sort(([a], [b]) => compareText(a, b))) {
      const files = halves.map((half) => half.file)
      if (files.length === 2) {
        this.#add(tarEntry('adapter', `${folder}adapter.tar`, files, baseOf))
        continue
      }
      const [{ file, outcome }] = halves as [Match<'adapter'>]
      const other = outcome.half === 'weights' ? 'adapter_config.json' : 'adapter_model.safetensors'
      this.#skip(file.name, 'incomplete-adapter')
      this.#warn(
        'incomplete-adapter',
        [file.name],
        `${file.name} was skipped: an adapter needs ${other} in the same folder`
      )
    }
  }
}

/** Vocabularies that are too large for companions, in the forms in which loaders read them. */
const LARGE_VOCABULARY =
  /\.(?:tiktoken|spm|vocab)$|^(?:tekken|vocabulary|(?:shared|source|target)_vocabulary|unigram|encoder)\.json$|^(?:bpe\.codes|dict\.txt|unigrams\.txt)$|\.model(?:\.v[0-9]+)?$/
const COMPANION_BYTES = 1024 * 1024
const MAX_VOCABULARY_BYTES = 64 * 1024 * 1024

const PIECE_ADVICE = 'is a piece of a GGUF that was cut for its upload; join the pieces with cat, and import the file'

/** As {@link outcomeOf}, for a listing with normalized names: a GGUF's name tells its role (spec rec.26), and large vocabularies are kept (spec rec.31). */
function normalizedOutcomeOf({ name, sizeBytes }: ListedFile): Outcome {
  const outcome = outcomeOf(name)
  if (outcome.is === 'skip' && outcome.reason === 'unrecognised') {
    if (PIECE.test(name)) return { is: 'skip', reason: 'split-file' }
    const isKept = sizeBytes > COMPANION_BYTES && sizeBytes <= MAX_VOCABULARY_BYTES
    return isKept && LARGE_VOCABULARY.test(baseOf(name)) ? { is: 'tokenizer' } : outcome
  }
  const isGguf = /.\.gguf$/s.test(baseOf(name)) && (outcome.is === 'weights' || outcome.is === 'aux')
  if (!isGguf) return outcome
  const role = roleOfName(ggufNameOf(name, stemOf(name)))
  if (role === 'model') return { is: 'weights', format: 'gguf' }
  return role === 'vocabulary' ? { is: 'skip', reason: role } : { is: 'aux', role }
}

const fileEntry = (kind: EntryKind, file: ListedFile): ManifestEntry => ({
  kind,
  name: file.name,
  sizeBytes: file.sizeBytes,
  content: { from: 'file', name: file.name }
})

function tarEntry(
  kind: EntryKind,
  name: string,
  files: readonly ListedFile[],
  rename: (name: string) => string
): ManifestEntry {
  const plan = planTar(
    files.map((file): TarMember => ({ name: rename(file.name), from: file.name, sizeBytes: file.sizeBytes }))
  )
  return {
    kind,
    name,
    sizeBytes: plan.sizeBytes,
    content: { from: 'tar', members: plan.members.map(({ file }) => file) }
  }
}

/** Kinds in manifest order; both weights formats are sorted together by name. */
const RANK: Record<EntryKind, number> = {
  'weights.gguf': 0,
  'weights.safetensors': 0,
  'weights.aux': 1,
  tokenizer: 2,
  'chat-template': 3,
  adapter: 4,
  code: 5,
  opaque: 6
}

const byManifestOrder = (a: ManifestEntry, b: ManifestEntry): number =>
  RANK[a.kind] - RANK[b.kind] || compareText(a.name, b.name)

/** True when an artifact can be made: there are weights, or adapters, or files that are taken as they are. */
export const isImportable = (recognition: Recognition): boolean =>
  recognition.entries.some((entry) => isWeights(entry) || isAdapter(entry) || entry.kind === 'opaque')

/** What could be done instead, for some of the formats that no row takes. */
const ADVICE: Readonly<Record<string, string>> = {
  'split-file': PIECE_ADVICE,
  pickle:
    'can run code when it is loaded; a pull request of the repository may hold safetensors (revision refs/pr/1), else ' +
    'convert it and import the folder'
}
const AS_THEY_ARE = '"recognise": "opaque" imports the files as they are'
const MAX_SHOWN_NAME = 200

const PARTS_ALONE: readonly { readonly role: string; readonly what: string }[] = [
  { role: 'draft', what: 'a draft head, which works only beside its model' },
  { role: 'vision-projector', what: 'a projector, which works only beside its model' },
  { role: 'imatrix', what: 'an importance matrix, which only quantizing reads' }
]

/** Says what there is where there are only parts of a model. @throws ClassifyError `E_NOT_IMPORTABLE` */
function requireMore({ names, entries, skipped }: Recognition): void {
  if (names !== 'normalized') return
  const vocabulary = skipped.find(({ reason }) => reason === 'vocabulary')
  const part = PARTS_ALONE.flatMap(({ role, what }) =>
    entries.filter((entry) => entry.role === role).map((entry) => ({ name: entry.name, what }))
  ).at(0)
  const found = part ?? (vocabulary && { name: vocabulary.name, what: 'a vocabulary without a model' })
  if (found === undefined) return
  throw new ClassifyError(
    'E_NOT_IMPORTABLE',
    `there are no weights to import: ${JSON.stringify(found.name.slice(0, MAX_SHOWN_NAME))} is ${found.what}`,
    { name: found.name, reason: 'part' }
  )
}

/**
 * The eligibility check (spec rec.3), before anything is read.
 * @throws ClassifyError `E_NOT_IMPORTABLE`. Where there are weights in formats that no row takes, the message names them, and
 *   `reason` is the first: `onnx`, `ggml`, `pickle` and so on. `candidates` is `opaque` if the files could be imported as they are.
 */
export function requireImportable(recognition: Recognition): void {
  if (isImportable(recognition)) return
  requireMore(recognition)
  const unknown = recognition.skipped.filter(({ reason }) => reason === 'unrecognised' || reason === 'split-file')
  const formats = formatsIn(unknown.map(({ name }) => name))
  // a repository with pickles may have safetensors in another place
  const first = formats.find(({ id }) => id === 'pickle') ?? formats[0]
  const candidates = recognition.uses.size > 0 ? ['opaque'] : []
  if (first !== undefined) {
    const [name] = first.names
    const advice = ADVICE[first.id] === undefined ? '' : `; ${shown(name!)} ${ADVICE[first.id]}`
    const message = `there are no weights to import: the files are ${formats.map(counted).join(', ')}${advice}; ${AS_THEY_ARE}`
    throw new ClassifyError('E_NOT_IMPORTABLE', message, { name: name!, reason: first.id, candidates })
  }
  throw new ClassifyError(
    'E_NOT_IMPORTABLE',
    'no file is recognized as model weights: expected *.gguf, *.safetensors, or adapter_model.safetensors with ' +
      `adapter_config.json${candidates.length > 0 ? `; ${AS_THEY_ARE}` : ''}`,
    { candidates }
  )
}

const shown = (name: string): string => JSON.stringify(name.slice(0, MAX_SHOWN_NAME))

const counted = ({ label, names }: ReturnType<typeof formatsIn>[number]): string =>
  `${label} (${shown(names[0]!)}${names.length > 1 ? ` and ${names.length - 1} more` : ''})`
