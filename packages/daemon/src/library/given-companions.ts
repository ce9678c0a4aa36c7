import { type Companions, type OmittedFile, type Sealed, sealCompanions } from '@svc/manifest'
import type { ArtifactState } from './artifact-record.ts'

/** Base names, in lower case, that loaders read, or that say what a model is, who may use it and who vouches for it. */
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

/** Whether a file or one of its folders has a name that is a secret's by convention: it is not kept at all (spec rec.24). */
export const isSecretByName = (path: string): boolean =>
  path
    .normalize('NFKC')
    .toLowerCase()
    .split('/')
    .some((part) => SECRETS.some((pattern) => pattern.test(part)))

/** Whether a file of a folder on the owner's disk has a name that loaders of models read (spec rec.24). */
export function isForLoaders(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  return FOR_LOADERS.some((pattern) => pattern.test(name)) && !isSecretByName(path)
}

type WithSource = { readonly source: Pick<ArtifactState['source'], 'kind'> }

/**
 * The only place that decides which companions may leave with an artifact that may leave (spec add.37; `verdictOf` decides that).
 * What a hub or a registry listed was chosen to be published. A folder of the owner's was not: what no loader reads is the
 * owner's own, as are the names of files that were left there.
 */
const isOwn = (file: { readonly path: string; readonly own?: boolean }, { source }: WithSource): boolean =>
  // absent in documents of earlier versions, and in those of others' sources
  file.own ?? (source.kind === 'local' && !isForLoaders(file.path))

/** Notes at an import what is the owner's own. @param givesAll the owner said that everything may leave */
export const markedOwn = <T extends { readonly path: string }>(file: T, origin: WithSource, givesAll: boolean): T =>
  isOwn(file, origin) ? { ...file, own: !givesAll } : file

/** The companions that never leave: the owner's views alone have them. */
export const ownCompanions = ({ files }: Pick<Companions, 'files'>, origin: WithSource): Companions['files'] =>
  files.filter((file) => isOwn(file, origin))

/**
 * What may leave of an artifact's companions: every road out asks this, after `verdictOf`. The document says nothing of what stays.
 * @returns undefined where nothing is left
 */
export function givenCompanions(
  { files, omitted, more }: Companions,
  origin: WithSource
): Sealed<Companions> | undefined {
  const given = files.filter((file) => !isOwn(file, origin)).map(({ path, size, digest }) => ({ path, size, digest }))
  const told = omitted.filter((file) => !isOwnOmission(file, origin))
  if (given.length === 0 && told.every(({ reason }) => reason === 'artifact')) return undefined
  const isAll = told.length === omitted.length
  return sealCompanions({
    files: given,
    omitted: told.map(({ path, size, reason }) => ({ path, size, reason })),
    ...(isAll && more !== undefined && { more })
  })
}

/** What was left out, with the mark of names that never leave. */
export const markedOmissions = ({ omitted }: Pick<Companions, 'omitted'>, origin: WithSource): Companions['omitted'] =>
  omitted.map((file) => {
    const { path, size, reason } = file
    return { path, size, reason, ...(isOwnOmission(file, origin) && { own: true }) }
  })

/** Names of hidden files and secrets are nobody's business, whatever the owner said of the folder. */
const isOwnOmission = (file: OmittedFile, origin: WithSource): boolean =>
  file.reason === 'hidden' || file.reason === 'secret' || (file.reason !== 'artifact' && isOwn(file, origin))
