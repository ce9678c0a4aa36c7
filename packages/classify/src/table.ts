import { baseOf, folderOf } from './names.ts'

/**
 * The recognition table (spec rec.5) as data. Rows are tried from top to bottom, case-sensitively except for licence
 * names; the first match wins. Files that match no row are skipped as unrecognized.
 *
 * A change here changes sealed bytes: increase `SPEC_VERSION` with it.
 */
export const SPEC_VERSION = '1'

/** The purpose of a file that accompanies the weights (spec rec.5; `draft` and `adapter`: spec rec.26). */
export type AuxRole = 'imatrix' | 'vision-projector' | 'weights-index' | 'draft' | 'adapter'
/** The component of the model that a Python file defines, from the prefix of its name (spec rec.5). */
export type CodeRole = 'model' | 'tokenization' | 'configuration' | 'processor'

/** Why a file does not become part of an artifact. */
export type SkipReason =
  | 'training'
  | 'housekeeping'
  | 'nested-config'
  | 'non-lora-trainables'
  | 'incomplete-adapter'
  | 'chat-template-superseded'
  | 'reserved-name'
  | 'vocabulary'
  | 'split-file'
  | 'not-chosen'
  | 'unrecognised'

/** What becomes of a file whose name matches a row. */
export type Outcome =
  | { readonly is: 'adapter'; readonly half: 'weights' | 'config' }
  | { readonly is: 'skip'; readonly reason: SkipReason }
  | { readonly is: 'aux'; readonly role: AuxRole }
  | { readonly is: 'weights'; readonly format: 'gguf' | 'safetensors' }
  | { readonly is: 'tokenizer' }
  /** If there are several templates, the lowest rank wins. */
  | { readonly is: 'chat-template'; readonly rank: number }
  | { readonly is: 'code'; readonly role: CodeRole }
  | { readonly is: 'config' }
  /** `detect` is false for notices, which are kept but do not identify a licence. */
  | { readonly is: 'licence'; readonly detect: boolean }

/** One row of the recognition table. */
export interface Row {
  /** Stable, for tests and diagnostics. */
  readonly id: string
  /** What `match` is tested against: the last segment, the folder with its trailing slash, or the whole path. */
  readonly on: 'base' | 'folder' | 'path'
  readonly match: RegExp
  readonly becomes: Outcome
}

const LICENCE_ENDINGS = 'md|markdown|txt|text|rst|html?|pdf|lesser|lib|mit|bsd|isc|gpl|lgpl|agpl|mpl|apache'
/** What may follow `LICENSE`: a qualifier (`-MODEL`, `-APACHE-2.0`) and extensions (`.txt`, `.Apache-2.0`). */
const LICENCE_TAIL = String.raw`(?:[-_ ][a-z0-9_ -]*(?:\.\d[a-z0-9-]*)*)?(?:\.(?:${LICENCE_ENDINGS})(?:[-.v]?\d[\d.]*)?)*`
const TOKENIZER_CONFIGS =
  'tokenizer|tokenizer_config|special_tokens_map|added_tokens|preprocessor_config|processor_config'

/** The recognition table (spec rec.5): tried from top to bottom, the first matching row decides. */
export const TABLE: readonly Row[] = [
  // adapters take precedence over the folder skips: the adapter in a training checkpoint is worth keeping.
  {
    id: 'adapter-weights',
    on: 'base',
    match: /^adapter_model\.safetensors$/,
    becomes: { is: 'adapter', half: 'weights' }
  },
  { id: 'adapter-config', on: 'base', match: /^adapter_config\.json$/, becomes: { is: 'adapter', half: 'config' } },
  // above the folder skips because of its warning: the file is skipped either way.
  {
    id: 'non-lora-trainables',
    on: 'base',
    match: /^non_lora_trainables\.bin$/,
    becomes: { is: 'skip', reason: 'non-lora-trainables' }
  },

  {
    id: 'checkpoint-folder',
    on: 'folder',
    match: /(?:^|\/)checkpoint-[^/]*\//,
    becomes: { is: 'skip', reason: 'training' }
  },
  {
    id: 'housekeeping-folder',
    on: 'folder',
    match: /(?:^|\/)(?:wandb|runs|logs|assets|__pycache__|benchmarks|\.eval_results)\//,
    becomes: { is: 'skip', reason: 'housekeeping' }
  },

  // before the general row for safetensors: optimizer state is saved with that extension, too.
  {
    id: 'training-state',
    on: 'base',
    match: /^(?:rng_state[^/]*\.pth|trainer_state\.json|training_args\.bin)$/,
    becomes: { is: 'skip', reason: 'training' }
  },
  {
    id: 'optimizer-state',
    on: 'base',
    match: /^(?:optimizer|scheduler)(?:_\d+)?\.(?:pt|pth|bin|safetensors)$/,
    becomes: { is: 'skip', reason: 'training' }
  },

  { id: 'imatrix', on: 'base', match: /imatrix/, becomes: { is: 'aux', role: 'imatrix' } },
  { id: 'mmproj', on: 'base', match: /^mmproj/, becomes: { is: 'aux', role: 'vision-projector' } },
  {
    id: 'weights-index',
    on: 'base',
    match: /^model\.safetensors\.index\.json$/,
    becomes: { is: 'aux', role: 'weights-index' }
  },
  { id: 'gguf', on: 'base', match: /.\.gguf$/s, becomes: { is: 'weights', format: 'gguf' } },
  { id: 'safetensors', on: 'base', match: /.\.safetensors$/s, becomes: { is: 'weights', format: 'safetensors' } },

  {
    id: 'tokenizer',
    on: 'base',
    match: new RegExp(String.raw`^(?:(?:${TOKENIZER_CONFIGS})\.json|(?:vocab|merges)\.[^/]+)$`),
    becomes: { is: 'tokenizer' }
  },
  {
    id: 'tokenizer-model',
    on: 'base',
    match: /^(?:tokenizer[^/]*|spiece|sentencepiece[^/]*)\.model$/,
    becomes: { is: 'tokenizer' }
  },
  { id: 'root-model', on: 'path', match: /^[^/]+\.model$/, becomes: { is: 'tokenizer' } },

  { id: 'chat-template-jinja', on: 'base', match: /^chat_template\.jinja$/, becomes: { is: 'chat-template', rank: 0 } },
  { id: 'chat-template-json', on: 'base', match: /^chat_template\.json$/, becomes: { is: 'chat-template', rank: 1 } },
  { id: 'chat-template-bare', on: 'base', match: /^chat_template$/, becomes: { is: 'chat-template', rank: 2 } },

  { id: 'code-model', on: 'base', match: /^modeling_[^/]*\.py$/, becomes: { is: 'code', role: 'model' } },
  {
    id: 'code-tokenization',
    on: 'base',
    match: /^tokenization_[^/]*\.py$/,
    becomes: { is: 'code', role: 'tokenization' }
  },
  {
    id: 'code-configuration',
    on: 'base',
    match: /^configuration_[^/]*\.py$/,
    becomes: { is: 'code', role: 'configuration' }
  },
  { id: 'code-processor', on: 'base', match: /^[^/]*_processor\.py$/, becomes: { is: 'code', role: 'processor' } },

  { id: 'config', on: 'path', match: /^config\.json$/, becomes: { is: 'config' } },
  { id: 'nested-config', on: 'path', match: /\/config\.json$/, becomes: { is: 'skip', reason: 'nested-config' } },

  {
    id: 'notice',
    on: 'base',
    match: new RegExp(`^notices?${LICENCE_TAIL}$`, 'i'),
    becomes: { is: 'licence', detect: false }
  },
  {
    id: 'licence',
    on: 'base',
    match: new RegExp(`^(?:(?:[a-z0-9.]+[-_ ]){0,4}licen[cs]es?|unlicen[cs]e|copying)${LICENCE_TAIL}$`, 'i'),
    becomes: { is: 'licence', detect: true }
  },

  {
    id: 'housekeeping',
    on: 'base',
    match: /^README|^(?:\.gitattributes|generation_config\.json)$|\.(?:pyc|eval_results)$/,
    becomes: { is: 'skip', reason: 'housekeeping' }
  }
]

const UNRECOGNIZED: Outcome = { is: 'skip', reason: 'unrecognised' }

/** The outcome of the first matching row for a path; by default a file is skipped. */
export function outcomeOf(name: string): Outcome {
  const subjects = { base: baseOf(name), folder: folderOf(name), path: name }
  for (const row of TABLE) if (row.match.test(subjects[row.on])) return row.becomes
  return UNRECOGNIZED
}
