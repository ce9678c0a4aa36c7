import { defined } from './defined.ts'
import { configQuant } from './quant.ts'
import { MAX_CONFIG_BYTES } from './reads.ts'
import type { ConfigFacts, NamesRead, Warning, WarningCode } from './types.ts'

export const MAX_CONFIG_DEPTH = 32
/** Space for our own fields beside `upstream` in a model config of at most 1 MiB. */
const OWN_FIELDS_BYTES = 4096
const MAX_FAMILY_CHARS = 128

const CONTEXT_KEYS = [
  'max_position_embeddings',
  'n_positions',
  'n_ctx',
  'max_seq_len',
  'max_sequence_length',
  'seq_length'
]
/** Keys under which multimodal models keep the configuration of their language model. */
const TEXT_CONFIG_KEYS = ['text_config', 'llm_config', 'language_config']

const encoder = new TextEncoder()

/**
 * Parses the root `config.json`: the quant word, the family and the context length. Its text is kept verbatim if it is
 * UTF-8 and fits into the model config. Never throws on content:
 * - not UTF-8, or longer than 1 MiB (pass `undefined`): no facts and not kept, with a warning;
 * - not a JSON object, or deeper than 32 levels: kept, no facts, with a warning. The bare words `NaN`
 *   and `Infinity`, which Python's writer emits, are tolerated as values.
 */
export function readConfig(bytes: Uint8Array | undefined): ConfigFacts {
  if (!bytes || bytes.length > MAX_CONFIG_BYTES)
    return {
      warnings: [
        warning(
          'config-unreadable',
          `config.json has more than ${MAX_CONFIG_BYTES} bytes: it was neither read nor kept`
        )
      ]
    }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return {
      warnings: [warning('config-unreadable', 'config.json is not UTF-8 text: it was neither read nor kept')]
    }
  }
  const fits = encoder.encode(JSON.stringify(text)).length <= MAX_CONFIG_BYTES - OWN_FIELDS_BYTES
  const warnings = fits
    ? []
    : [warning('config-not-kept', 'config.json is too long for its text to be part of the artifact')]
  const root = tryParseObject(text)
  if (typeof root === 'string')
    warnings.push(
      warning('config-unreadable', `config.json ${root}: quant, family and context length are taken from elsewhere`)
    )
  return { ...(fits ? { upstream: text } : {}), ...(typeof root === 'string' ? {} : factsOf(root)), warnings }
}

const warning = (code: WarningCode, message: string): Warning => ({ code, names: ['config.json'], message })

export type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
/** Own properties only: a key `__proto__` or `constructor` is nothing special. */
const get = (object: Json, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined)
function getText(object: Json, key: string): string | undefined {
  const value = get(object, key)
  return typeof value === 'string' ? value : undefined
}
function getObject(object: Json, key: string): Json | undefined {
  const value = get(object, key)
  return isObject(value) ? value : undefined
}

/** Where the configuration of the language model is: in a multimodal one, inside. */
export const textConfigOf = (root: Json): Json => nestedOf(root)[0] ?? root

const nestedOf = (root: Json): Json[] =>
  TEXT_CONFIG_KEYS.map((key) => getObject(root, key)).filter((object) => object !== undefined)

function factsOf(root: Json): Pick<ConfigFacts, 'family' | 'contextLength' | 'quant' | 'normalizedQuant'> {
  const quantization = getObject(root, 'quantization_config')
  const quant = quantization && configQuant(getText(quantization, 'quant_method'), getText(quantization, 'format'))
  const architectures = get(root, 'architectures')
  const family = [get(root, 'model_type'), ...(Array.isArray(architectures) ? architectures.slice(0, 1) : [])].find(
    isFamily
  )
  const contextLength = [root, ...nestedOf(root)]
    .flatMap((object) => CONTEXT_KEYS.map((key) => get(object, key)))
    .find(isContextLength)
  return defined({ quant, normalizedQuant: normalizedQuantOf(root), family, contextLength })
}

/** MLX's modes that have a quant of their own; any other mode is told by its bits. */
const MLX_MODES: ReadonlySet<string> = new Set(['mxfp4', 'mxfp8', 'nvfp4'])
const MAX_BITS = 32

/** With normalized names: MLX's bits or mode, and the bits per weight of EXL2 and EXL3 (spec rec.29). */
function normalizedQuantOf(root: Json): string | undefined {
  for (const quantization of [getObject(root, 'quantization'), getObject(root, 'quantization_config')]) {
    if (quantization === undefined) continue
    const bits = get(quantization, 'bits')
    if (typeof bits !== 'number' || !(bits > 0 && bits <= MAX_BITS)) continue
    const method = getText(quantization, 'quant_method')
    if (method === 'exl2' || method === 'exl3') return `${method}-${bitsText(bits)}bpw`
    if (method !== undefined || get(quantization, 'group_size') === undefined) continue
    const mode = getText(quantization, 'mode') ?? ''
    return MLX_MODES.has(mode) ? mode : Number.isInteger(bits) ? `mlx-${bits}bit` : undefined
  }
  return undefined
}

/** As branches are named: with at least one decimal. */
function bitsText(bits: number): string {
  const text = String(Math.round(bits * 100) / 100)
  return text.includes('.') ? text : `${text}.0`
}

/** The quant that a `config.json` names, as a listing's names are read. */
export const quantOfConfig = (
  config: Pick<ConfigFacts, 'quant' | 'normalizedQuant'> | undefined,
  names: NamesRead
): string | undefined => (names === 'normalized' ? config?.normalizedQuant : undefined) ?? config?.quant

/** A short well-formed text: it goes into canonical JSON, which allows no lone surrogates. */
export const isFamily = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_FAMILY_CHARS && value.isWellFormed()

export const isContextLength = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0

/** The object, or a description of the defect. */
export function tryParseObject(text: string): Json | string {
  const plain = withoutPythonWords(text.replace(/^\uFEFF/, ''))
  if (plain === undefined) return `is nested deeper than ${MAX_CONFIG_DEPTH}`
  try {
    const value: unknown = JSON.parse(plain)
    return isObject(value) ? value : 'is not a JSON object'
  } catch {
    return 'is not JSON'
  }
}

/** Replaces `NaN` and `Infinity` outside of strings by numbers, in one pass; undefined when nested too deep. */
function withoutPythonWords(text: string): string | undefined {
  let depth = 0
  let out = ''
  let copied = 0
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '"') {
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === '\\') i++
    } else if (char === '{' || char === '[') {
      if (++depth > MAX_CONFIG_DEPTH) return undefined
    } else if (char === '}' || char === ']') depth--
    else if (char === 'N' || char === 'I') {
      const word = ['NaN', 'Infinity'].find((candidate) => text.startsWith(candidate, i))
      if (!word) continue
      out += `${text.slice(copied, i)}0`
      i += word.length - 1
      copied = i + 1
    }
  }
  return out + text.slice(copied)
}
