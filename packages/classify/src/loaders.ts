import { ClassifyError } from './errors.ts'
import { globTest } from './globs.ts'
import { baseOf } from './names.ts'
import { namesHere } from './names-by-header.ts'
import { normalizedName } from './normalize.ts'
import { goesWithAny } from './opaque.ts'
import { recognize } from './recognize.ts'
import { type AuxSelection, chosenOf } from './selection.ts'
import { shardOf } from './shards.ts'
import { outcomeOf } from './table.ts'
import type { ManifestEntry } from './types.ts'

/** Base names, in lower case, of files that loaders read, or that tell what a model is, who may use it and who vouches for it. */
const FOR_LOADERS: readonly RegExp[] = [
  /\.(?:py|jinja2?|tiktoken|spm|safetensors)$/,
  /^(?:readme|licen[cs]e|copying|notice|use_policy)(?:[._-].*)?$/,
  /^(?:(?:adapter|feature_extractor|generation|hf_quant|image_processor|model|preprocessor|processor|quant|quantization|quantize|scheduler|sentence_[a-z0-9]+|tokenizer|video_preprocessor)_)?config\.json$/,
  /^model\.sig$/,
  /^(?:config_sentence_transformers|configuration|mlc-chat-config|model_index|modules|params)\.json$/,
  /^(?:added_tokens|alphabet|chat_template|encoder|normalizer|special_tokens_map|tekken|tokenizer)\.json$/,
  /^(?:(?:shared_|source_|target_)?vocab(?:ulary)?\.(?:json|txt|bpe)|merges\.txt|bpe\.codes|dict\.txt|unigrams\.txt)$/,
  /^(?:spiece|sentencepiece|tokenizer)(?:\.bpe)?\.model(?:\.v[0-9]+)?$/,
  /^pytorch_model[0-9a-z_-]*\.bin$|\.(?:safetensors|bin)\.index\.json$/
]

/** Names, in lower case, that are secrets by convention. */
const SECRETS: readonly RegExp[] = [
  /\.(?:pem|key|ppk|p12|pfx|jks|keystore|kdbx|gpg|asc|ovpn|tfstate)$/,
  /^(?:id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|known_hosts|npmrc|pypirc|pgpass|kubeconfig|token)(?:[. ~(].*)?$/,
  /(?:^|[^a-z0-9])env(?:$|\.local$)/,
  /(?:^|[^a-z0-9])(?:credentials?|secrets?|passwords?|passwd|htpasswd|netrc)(?:[^a-z0-9]|$)/,
  /(?:^|[^a-z0-9])(?:api|access|private|secret|ssh|licen[cs]e|deploy)[^a-z0-9]?keys?(?:[^a-z0-9]|$)/,
  /(?:^|[^a-z0-9])(?:hf|auth|access|bearer|refresh|api|github|gitlab)[^a-z0-9]?token(?:[^a-z0-9]|$)/,
  /service[^a-z0-9]?account|client[^a-z0-9]?secret/
]

/** Whether a file or one of its folders is named like a secret. Such a file is not kept at all (spec rec.24). */
export const isSecretByName = (path: string): boolean =>
  path
    .normalize('NFKC')
    .toLowerCase()
    .split('/')
    .some((part) => SECRETS.some((pattern) => pattern.test(part)))

/** Whether loaders of models read files of this name (spec rec.24): asked of files in a folder on their owner's disk. */
export function isForLoaders(path: string): boolean {
  const name = baseOf(path).toLowerCase()
  return FOR_LOADERS.some((pattern) => pattern.test(name)) && !isSecretByName(path)
}

/** Weights in formats that no import takes; small ones are kept as companions. */
const OTHER_WEIGHTS = /\.(?:bin|safetensors|gguf)$/

/** What an owner chose of a model at its import, as a request spells it; nothing for everything. */
export interface OwnersChoice {
  readonly names?: 'normalized'
  readonly quants?: readonly string[]
  /** Globs. */
  readonly files?: readonly string[]
  readonly aux?: Exclude<AuxSelection, 'all'>
  /** Every file as it is (spec rec.32). */
  readonly recognise?: 'opaque'
  readonly allowPickle?: true
}

/** A folder, and what was signed of its model. */
export interface SignedFolder {
  /** The names of the signed files. */
  readonly signed: readonly string[]
  /** The names of the files in the folder. */
  readonly here: readonly string[]
  /** Files that the source says it has beside these. */
  readonly omitted: readonly { readonly path: string }[]
  /** What its owner chose, if not everything. */
  readonly choice?: OwnersChoice | undefined
  /** It is the folder of one artifact: other quants are in others. */
  readonly isOfArtifact?: boolean
}

/**
 * Tells which signed files a folder may lack: weights, and what goes with them, that its owner's choice leaves out of the
 * signed files; and files that no loader misses, if the source says that it has them. A set of weights in parts is here
 * whole or not at all. Nothing that a source says excuses weights.
 */
export function leftOutTest(folder: SignedFolder): (path: string) => boolean {
  const nameHere = namesHere(folder.signed, folder.here)
  const groupOf = (path: string): string | undefined => shardOf(nameHere(path))?.group
  const begun = new Set(folder.here.map(groupOf).filter((group) => group !== undefined))
  const listed = new Set(folder.omitted.map(({ path }) => path))
  let notChosen: ReadonlySet<string> | undefined
  return (path) => {
    const { is } = outcomeOf(path)
    if (is === 'weights' || is === 'aux' || folder.choice?.recognise === 'opaque') {
      notChosen ??= notChosenOf(folder, nameHere)
      return notChosen.has(path) && !begun.has(groupOf(path) ?? '')
    }
    const isListed = listed.has(path) || listed.has(normalizedName(path))
    return isListed && is === 'skip' && (OTHER_WEIGHTS.test(path) || !isForLoaders(path))
  }
}

/** The signed files that the owner's choice would leave out of an import of all of them. */
function notChosenOf(
  { signed, here, choice = {}, isOfArtifact = false }: SignedFolder,
  nameHere: (path: string) => string
): ReadonlySet<string> {
  const isHere = new Set(here)
  if (choice.recognise === 'opaque') {
    const isChosen = globTest(choice.files ?? ['**'], choice.names === 'normalized')
    return new Set(signed.filter((path) => !isChosen(path) && !goesWithAny(path)))
  }
  const isNormalized =
    choice.names === 'normalized' || signed.some((path) => !isHere.has(path) && isHere.has(nameHere(path)))
  const names = new Map(signed.map((path) => [path, isNormalized ? nameHere(path) : path]))
  try {
    const selection = { ...choice, files: choice.files && globTest(choice.files, isNormalized) }
    const listing = [...names.values()].map((name) => ({ name, sizeBytes: 0 }))
    const recognition = recognize(listing, isNormalized ? 'normalized' : 'upstream')
    const ownTensors = recognition.entries.some(({ kind, name }) => kind === 'weights.safetensors' && isHere.has(name))
    // which quant these are their headers say: those that are here are of one that was chosen
    const { left, entries } = chosenOf(recognition, selection, ownTensors ? choice.quants?.[0] : undefined)
    const out = new Set(left)
    const quants = new Set(entries.filter(({ name }) => isHere.has(name)).map(({ quant }) => quant))
    const isOfOther = ({ kind, quant, goesWith }: ManifestEntry): boolean =>
      kind === 'weights.safetensors'
        ? !ownTensors
        : kind === 'weights.gguf'
          ? !quants.has(quant)
          : goesWith !== undefined && !goesWith.some((each) => quants.has(each))
    if (isOfArtifact) for (const entry of entries) if (isOfOther(entry)) out.add(entry.name)
    return new Set([...names].filter(([, name]) => out.has(name)).map(([path]) => path))
  } catch (error) {
    // the signed files are no model for which there is such a choice
    if (!(error instanceof ClassifyError)) throw error
    return new Set()
  }
}
