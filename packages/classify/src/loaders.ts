import { baseOf } from './names.ts'
import { normalisedName } from './normalise.ts'

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

/**
 * Whether an import left out a file of a repository without harm: weights that were not chosen, or what no loader misses.
 * @param omitted files that the source has and the import does not bring
 */
export function isLeftOut(
  path: string,
  omitted: readonly { readonly path: string; readonly reason: string }[]
): boolean {
  const name = normalisedName(path)
  const found = omitted.find((file) => file.path === path || file.path === name)
  if (found === undefined) return false
  return found.reason === 'artifact' || /\.(?:bin|safetensors|gguf)$/.test(path) || !isForLoaders(path)
}
