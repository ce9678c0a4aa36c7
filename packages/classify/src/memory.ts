import { type Json, textConfigOf, tryParseObject } from './config.ts'
import type { GgufFacts } from './gguf.ts'

/**
 * How a model's cache grows, in bytes. Elements are f16, as runtimes keep them unless told otherwise; a recurrent state is f32.
 */
export interface CacheShape {
  /** Per token of the context: the layers that attend to all of it. */
  readonly tokenBytes: number
  /** Per token of the window: the layers that attend to the last `windowTokens` alone. */
  readonly windowTokenBytes: number
  readonly windowTokens: number
  /** Whatever the context: the state of the recurrent layers for one sequence. */
  readonly stateBytes: number
  readonly embedding: number
  /** Undefined where the header does not say. */
  readonly vocabulary?: number
  readonly contextLength?: number
}

/** What a model needs beside its weights, for one sequence. */
export interface CacheNeed {
  readonly contextTokens: number
  /** Of keys, values and recurrent state. */
  readonly cacheBytes: number
  /** An estimate: runtimes differ. */
  readonly computeBytes: number
}

/** Tokens that llama.cpp computes at once unless told otherwise. */
const BATCH = 512
/** Cells of a windowed cache come in multiples of this. */
const PAD = 256
const F16 = 2
const F32 = 4
/** The longest context that is assumed without being asked for. */
const MAX_DEFAULT_CONTEXT = 32_768
const UNKNOWN_CONTEXT = 4_096
const USUAL_VOCABULARY = 150_000
/** Beyond any model; what a header says beyond it is not believed. */
const MAX_LAYERS = 10_000
const MAX_VALUE = 2 ** 32

/**
 * The memory that a context takes: cache = tokens · bytes per token, a window of `w` counted as `w + 512` tokens rounded up to 256, plus
 * recurrent state. Compute buffer, an estimate: 512 · 4 · (vocabulary + embedding), which is what llama.cpp allocates
 * where its attention is fused. `contextTokens` 0: the model's own, at most 32,768.
 */
export function cacheNeed(shape: CacheShape, contextTokens: number): CacheNeed {
  const own = Math.min(shape.contextLength ?? UNKNOWN_CONTEXT, MAX_DEFAULT_CONTEXT)
  const tokens = contextTokens === 0 ? own : contextTokens
  const window = Math.min(tokens, Math.ceil((shape.windowTokens + BATCH) / PAD) * PAD)
  return {
    contextTokens: tokens,
    cacheBytes: tokens * shape.tokenBytes + window * shape.windowTokenBytes + shape.stateBytes,
    computeBytes: BATCH * F32 * ((shape.vocabulary ?? USUAL_VOCABULARY) + shape.embedding)
  }
}

/** By architecture: every n-th layer attends to everything, unless the header says otherwise (llama.cpp's own table). */
const FULL_EVERY: Readonly<Record<string, number>> = {
  gemma2: 2,
  gemma3: 6,
  llama4: 4,
  'gpt-oss': 2,
  cohere2: 4,
  exaone4: 4,
  olmo2: 4
}
/** The window that llama.cpp uses whatever the header says, except 0. */
const FIXED_WINDOW: Readonly<Record<string, number>> = { llama4: 8_192 }
/** Their headers name a window, but llama.cpp keeps the whole context. */
const WINDOW_UNUSED = ['llama', 'qwen2', 'qwen2moe', 'qwen3', 'qwen3moe', 'phi3', 'starcoder2']
/** Their recurrent layers have a state of convolution and SSM. */
const STATEFUL = ['mamba', 'mamba2', 'jamba', 'granitehybrid', 'qwen3next', 'qwen35', 'qwen35moe']
/** Keys that stand for caches of other kinds. */
const STRANGE = /\.(?:ssm|wkv|shortconv|kda|time_mix|token_shift|indexer)/

/**
 * The cache of a GGUF model from its header, as llama.cpp allocates it: grouped and multi-query attention, MLA (only keys,
 * compressed), sliding windows, recurrent state. A string says why it is unknown.
 */
export function ggufCache(facts: GgufFacts): CacheShape | string {
  const architecture = facts.get('general.architecture')
  if (typeof architecture !== 'string') return 'the header names no architecture'
  const at: At = (key, layer = 0) => {
    const value = facts.get(`${architecture}.${key}`)
    const number = typeof value === 'object' ? value[layer] : value
    return typeof number === 'number' && number >= 0 && number <= MAX_VALUE ? number : undefined
  }
  const layers = (at('block_count') ?? 0) - (at('nextn_predict_layers') ?? 0)
  const embedding = at('embedding_length')
  if (!(layers > 0 && layers <= MAX_LAYERS) || embedding === undefined) return 'the header does not give its layers'
  const isStrange = [...facts.keys()].some((key) => STRANGE.test(key))
  if (isStrange && !STATEFUL.includes(architecture)) return `the state of ${architecture} is unknown`
  const said = at('attention.sliding_window')
  const windowTokens = said === 0 ? 0 : (FIXED_WINDOW[architecture] ?? said ?? 0)
  const isLocal = windowTokens === 0 ? () => false : windowOf(architecture, facts, at)
  if (isLocal === undefined) return `it is unknown which layers of ${architecture} have a window`

  const bytes = { token: 0, window: 0, state: 0 }
  for (let layer = 0; layer < layers - (at('attention.shared_kv_layers') ?? 0); layer++) {
    if (isRecurrent(architecture, layer, at)) bytes.state += ssmBytes(at)
    else bytes[isLocal(layer) ? 'window' : 'token'] += elementsOf(layer, isLocal(layer), embedding, at) * F16
  }
  if (Number.isNaN(bytes.token + bytes.window)) return 'the header does not give the size of its keys'
  const vocabulary = facts.get('tokenizer.ggml.tokens')
  return {
    tokenBytes: bytes.token,
    windowTokenBytes: bytes.window,
    windowTokens,
    stateBytes: bytes.state,
    embedding,
    ...(typeof vocabulary === 'number' && { vocabulary }),
    ...contextOf(at('context_length'))
  }
}

/** Which layers have a window; undefined where that is not known. */
function windowOf(architecture: string, facts: GgufFacts, at: At): ((layer: number) => boolean) | undefined {
  const pattern = 'attention.sliding_window_pattern'
  if (WINDOW_UNUSED.includes(architecture)) return () => false
  if (typeof facts.get(`${architecture}.${pattern}`) === 'object') return (layer) => at(pattern, layer) === 1
  const every = at(pattern) ?? FULL_EVERY[architecture]
  return every === undefined ? undefined : (layer) => isBetween(layer, every)
}

/** Elements of the keys and values of one token in a layer; NaN where the header does not say. */
function elementsOf(layer: number, isLocal: boolean, embedding: number, at: At): number {
  const known = (key: string): number => at(key) ?? Number.NaN
  if (at('attention.key_length_mla') !== undefined)
    return known('attention.kv_lora_rank') + known('rope.dimension_count')
  const heads = known('attention.head_count')
  const suffix = isLocal && at('attention.key_length_swa') !== undefined ? '_swa' : ''
  const lengths = ['key', 'value'].map((what) => at(`attention.${what}_length${suffix}`) ?? embedding / heads)
  return (at('attention.head_count_kv', layer) ?? heads) * (lengths[0]! + lengths[1]!)
}

type At = (key: string, layer?: number) => number | undefined

/** Of every n layers the last one attends to everything; 0: none does. */
const isBetween = (layer: number, every: number): boolean => every === 0 || layer % every < every - 1

function isRecurrent(architecture: string, layer: number, at: At): boolean {
  if (!STATEFUL.includes(architecture)) return false
  const interval = at('full_attention_interval')
  if (interval !== undefined) return isBetween(layer, interval)
  return (at('attention.head_count_kv', layer) ?? 0) === 0
}

function ssmBytes(at: At): number {
  const [inner = 0, state = 0, kernel = 1] = ['inner_size', 'state_size', 'conv_kernel'].map((key) => at(`ssm.${key}`))
  const groups = at('ssm.group_count') ?? 0
  return F32 * (Math.max(0, kernel - 1) * (inner + 2 * groups * state) + state * inner)
}

const contextOf = (length: number | undefined): Pick<CacheShape, 'contextLength'> =>
  length === undefined || length === 0 ? {} : { contextLength: length }

/** The cache of a model in safetensors, from the text of its `config.json`. A string says why it is unknown. */
export function configCache(text: string | undefined): CacheShape | string {
  const root = text === undefined ? 'is absent' : tryParseObject(text)
  if (typeof root === 'string') return `its config.json ${root}`
  const config = textConfigOf(root)
  const at: At = (key) => {
    const value = config[key]
    return typeof value === 'number' && value >= 0 && value <= MAX_VALUE ? value : undefined
  }
  const [layers = 0, embedding = 0, heads = 0] = ['num_hidden_layers', 'hidden_size', 'num_attention_heads'].map(
    (key) => at(key)
  )
  if (!(layers > 0 && layers <= MAX_LAYERS && embedding > 0 && heads > 0))
    return 'its config.json does not give its layers'
  if (Object.keys(config).some((key) => STATE_KEYS.test(key))) return 'its recurrent state is unknown'
  const window = config.use_sliding_window === false ? 0 : (at('sliding_window') ?? at('attention_chunk_size') ?? 0)
  const local = window === 0 ? 0 : localLayers(config, layers)
  if (local === undefined) return 'it is unknown which of its layers have a window'
  const latent = at('kv_lora_rank')
  const elements =
    latent === undefined
      ? 2 * (at('num_key_value_heads') ?? heads) * (at('head_dim') ?? embedding / heads)
      : latent + (at('qk_rope_head_dim') ?? 0)
  const vocabulary = at('vocab_size')
  return {
    tokenBytes: (layers - local) * elements * F16,
    windowTokenBytes: local * elements * F16,
    windowTokens: window,
    stateBytes: 0,
    embedding,
    ...(vocabulary !== undefined && { vocabulary }),
    ...contextOf(at('max_position_embeddings'))
  }
}

/** Keys of models that keep more than keys and values. */
const STATE_KEYS = /^(?:mamba|ssm|conv|linear_|state|wkv|time_|layers_block_type)/

/** The number of layers with a window; undefined where that is unknown. */
function localLayers(config: Json, layers: number): number | undefined {
  const { layer_types: types, no_rope_layers: rope, model_type: family } = config
  if (Array.isArray(types)) {
    const kinds = (types as unknown[]).slice(0, layers)
    if (kinds.some((kind) => kind !== 'full_attention' && !LOCAL.has(kind))) return undefined
    return kinds.filter((kind) => LOCAL.has(kind)).length
  }
  if (family === 'mistral') return layers
  if (family !== 'llama4_text') return undefined
  // despite its name, 1 stands for rotary positions, which go with chunks
  if (Array.isArray(rope) && rope.length > 0) return rope.slice(0, layers).filter((flag) => flag === 1).length
  return layers - Math.floor(layers / FULL_EVERY.llama4!)
}

const LOCAL: ReadonlySet<unknown> = new Set(['sliding_attention', 'chunked_attention'])
