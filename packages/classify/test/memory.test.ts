import { expect, test } from 'vitest'
import { type CacheShape, cacheNeed, configCache, ggufCache, ggufFacts } from '../src/index.ts'

const MIB = 2 ** 20
type Values = Readonly<Record<string, number | readonly number[]>>

/** The header of an architecture: keys without its name. */
function header(
  architecture: string,
  values: Values,
  vocabulary = 32_000
): ReadonlyMap<string, string | number | readonly number[]> {
  const own = Object.entries(values).map(([key, value]) => [`${architecture}.${key}`, value] as const)
  return new Map<string, string | number | readonly number[]>([
    ['general.architecture', architecture],
    ...own,
    ['tokenizer.ggml.tokens', vocabulary]
  ])
}

function shapeOf(architecture: string, values: Values, vocabulary?: number): CacheShape {
  const shape = ggufCache(header(architecture, values, vocabulary))
  if (typeof shape === 'string') throw new Error(shape)
  return shape
}
const cacheMib = (shape: CacheShape, context: number): number => cacheNeed(shape, context).cacheBytes / MIB

// Sizes as logs of llama.cpp give them ("KV self size", "llama_kv_cache: size", "llama_memory_recurrent: size"), from public reports.
test('grouped queries: Qwen2.5 7B, 28 layers of 512 + 512 at 2,048 tokens: 112.00 MiB', () => {
  const shape = shapeOf('qwen2', {
    block_count: 28,
    embedding_length: 3584,
    'attention.head_count': 28,
    'attention.head_count_kv': 4,
    'attention.sliding_window': 131_072
  })
  expect(cacheMib(shape, 2048)).toBe(112)
})

test('one head for all queries: gemma 1.1 2B at 4,096 tokens: 72.00 MiB, and a compute buffer of 504.00 MiB', () => {
  const keys = { block_count: 18, embedding_length: 2048, context_length: 8192, 'attention.head_count': 8 }
  const shape = shapeOf(
    'gemma',
    { ...keys, 'attention.head_count_kv': 1, 'attention.key_length': 256, 'attention.value_length': 256 },
    256_000
  )
  expect(cacheMib(shape, 4096)).toBe(72)
  expect(cacheNeed(shape, 4096).computeBytes / MIB).toBe(504)
})

const DEEPSEEK = {
  block_count: 61,
  embedding_length: 7168,
  'attention.head_count': 128,
  'attention.kv_lora_rank': 512,
  'rope.dimension_count': 64
}

test('MLA: DeepSeek R1 at 32,768 tokens takes 1166.62 MiB as q8_0, at 34 bytes for 32 elements', () => {
  const shape = shapeOf('deepseek2', {
    ...DEEPSEEK,
    'attention.head_count_kv': 1,
    'attention.key_length': 576,
    'attention.value_length': 512,
    'attention.key_length_mla': 192
  })
  expect(((cacheMib(shape, 32_768) / 2) * 34) / 32).toBeCloseTo(1166.62, 1)
})

test('a DeepSeek file from before MLA: rows of 24,576 keys and 16,384 values in each layer', () => {
  const shape = shapeOf('deepseek2', {
    ...DEEPSEEK,
    'attention.head_count_kv': 128,
    'attention.key_length': 192,
    'attention.value_length': 128
  })
  expect(shape.tokenBytes).toBe(61 * (24_576 + 16_384) * 2)
})

test('sliding window, by table: gpt-oss 20B at 131,072 tokens: 3072.00 MiB, and 768 cells in 12 layers', () => {
  const shape = shapeOf('gpt-oss', {
    block_count: 24,
    embedding_length: 2880,
    'attention.head_count': 64,
    'attention.head_count_kv': 8,
    'attention.key_length': 64,
    'attention.value_length': 64,
    'attention.sliding_window': 128
  })
  expect(cacheMib(shape, 131_072)).toBe(3072 + (768 * 12 * 2048) / MIB)
})

test('sliding window, by a list: 14 layers of 56 keep 131,072 cells in 1792.00 MiB, 42 keep 2,560 in 105.00 MiB', () => {
  const shape = shapeOf('afmoe', {
    block_count: 56,
    embedding_length: 1024,
    'attention.head_count': 8,
    'attention.head_count_kv': 2,
    'attention.key_length': 128,
    'attention.value_length': 128,
    'attention.sliding_window': 2048,
    'attention.sliding_window_pattern': Array.from({ length: 56 }, (_, i) => (i % 4 === 3 ? 0 : 1))
  })
  expect(cacheMib(shape, 131_072)).toBe(1792 + 105)
})

// The sizes follow from llama.cpp's source: 12 layers keep all cells, 36 keep 8,192 + 512, of 4,096 bytes each.
const SCOUT = {
  block_count: 48,
  embedding_length: 5120,
  'attention.head_count': 40,
  'attention.head_count_kv': 8,
  'attention.key_length': 128,
  'attention.value_length': 128
}
test('chunks: Llama 4 Scout at 32,768 tokens, whatever window its header names except none', () => {
  const at = (values: Values) => cacheMib(shapeOf('llama4', { ...SCOUT, ...values }), 32_768)
  expect(at({})).toBe(1536 + 1224)
  expect(at({ 'attention.sliding_window': 512 })).toBe(1536 + 1224)
  expect(at({ 'attention.sliding_window': 0 })).toBe(6144)
})

test('recurrent: Mamba 2.8B has 23.75 MiB of state at any context', () => {
  const shape = shapeOf('mamba', {
    block_count: 64,
    embedding_length: 2560,
    'attention.head_count': 0,
    'attention.head_count_kv': 0,
    'ssm.conv_kernel': 4,
    'ssm.inner_size': 5120,
    'ssm.state_size': 16
  })
  for (const context of [1, 2048, 1_000_000]) expect(cacheMib(shape, context)).toBe(23.75)
})

test('recurrent in three of four layers: Qwen3.6 27B at 262,144 tokens: 16384.00 MiB, and 598.50 MiB for four sequences', () => {
  const shape = shapeOf('qwen35', {
    block_count: 64,
    embedding_length: 5120,
    full_attention_interval: 4,
    'attention.head_count': 24,
    'attention.head_count_kv': 4,
    'attention.key_length': 256,
    'attention.value_length': 256,
    'ssm.conv_kernel': 4,
    'ssm.inner_size': 6144,
    'ssm.state_size': 128,
    'ssm.group_count': 16
  })
  expect(cacheMib(shape, 262_144)).toBe(16_384 + 598.5 / 4)
})

const PLAIN = { block_count: 2, embedding_length: 64, 'attention.head_count': 4 }
test.each([
  ['a window in layers that nobody knows', header('newest', { ...PLAIN, 'attention.sliding_window': 512 })],
  ['a state that nobody knows', header('newest', { ...PLAIN, 'wkv.head_size': 64 })],
  ['no layers', header('llama', { embedding_length: 64 })],
  ['too many layers', header('llama', { ...PLAIN, block_count: 2 ** 31 })],
  ['a fraction of nothing', header('llama', { block_count: 2, embedding_length: 64 })],
  ['no header', new Map()]
])('%s: the memory is unknown', (_, facts) => {
  expect(ggufCache(facts)).toEqual(expect.any(String))
})

test("without a given context, the model's own is taken, at most 32,768 tokens", () => {
  const contextOf = (length: number) =>
    cacheNeed(shapeOf('llama', { ...PLAIN, context_length: length }), 0).contextTokens
  expect([contextOf(2048), contextOf(1_000_000), contextOf(0)]).toEqual([2048, 32_768, 4096])
})

test('a config.json gives the figures of the header, also for the language model of a multimodal one', () => {
  const qwen = {
    num_hidden_layers: 28,
    hidden_size: 3584,
    num_attention_heads: 28,
    num_key_value_heads: 4,
    vocab_size: 152_064
  }
  const shape = configCache(
    JSON.stringify({
      model_type: 'vl',
      text_config: { ...qwen, sliding_window: 4096, use_sliding_window: false }
    })
  )
  expect(cacheMib(shape as CacheShape, 2048)).toBe(112)
  const gptOss = {
    num_hidden_layers: 24,
    hidden_size: 2880,
    num_attention_heads: 64,
    num_key_value_heads: 8,
    head_dim: 64,
    sliding_window: 128,
    layer_types: Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? 'sliding_attention' : 'full_attention'))
  }
  expect(cacheMib(configCache(JSON.stringify(gptOss)) as CacheShape, 131_072)).toBe(3072 + 18)
  const scout = {
    model_type: 'llama4_text',
    num_hidden_layers: 48,
    hidden_size: 5120,
    num_attention_heads: 40,
    num_key_value_heads: 8,
    head_dim: 128,
    attention_chunk_size: 8192,
    no_rope_layers: Array.from({ length: 48 }, (_, i) => (i % 4 === 3 ? 0 : 1))
  }
  const types = scout.no_rope_layers.map((rope) => (rope === 1 ? 'chunked_attention' : 'full_attention'))
  for (const config of [scout, { ...scout, no_rope_layers: [] }, { ...scout, layer_types: types }])
    expect(cacheMib(configCache(JSON.stringify({ text_config: config })) as CacheShape, 32_768)).toBe(1536 + 1224)
  const mla = { ...qwen, num_hidden_layers: 61, kv_lora_rank: 512, qk_rope_head_dim: 64 }
  expect((configCache(JSON.stringify(mla)) as CacheShape).tokenBytes).toBe(61 * 576 * 2)
})

test.each([
  ['nothing', undefined],
  ['a list', []],
  ['layers that are words', { num_hidden_layers: 'many', hidden_size: 1, num_attention_heads: 1 }],
  ['linear attention', { num_hidden_layers: 2, hidden_size: 8, num_attention_heads: 2, linear_num_value_heads: 4 }],
  ['a window without its layers', { num_hidden_layers: 2, hidden_size: 8, num_attention_heads: 2, sliding_window: 4 }]
])('a config.json with %s: the memory is unknown', (_, config) => {
  expect(configCache(JSON.stringify(config))).toEqual(expect.any(String))
})

/** A GGUF of these key/values: [type, bytes of the value] by key. */
function gguf(values: Readonly<Record<string, readonly [number, Buffer]>>): Buffer {
  const u32 = (n: number): Buffer => Buffer.from(new Uint32Array([n]).buffer)
  const u64 = (n: number): Buffer => Buffer.from(new BigUint64Array([BigInt(n)]).buffer)
  const parts = Object.entries(values).flatMap(([key, [type, bytes]]) => [
    u64(key.length),
    Buffer.from(key),
    u32(type),
    bytes
  ])
  return Buffer.concat([Buffer.from('GGUF'), u32(3), u64(0), u64(parts.length / 4), ...parts])
}
const number = (n: number): readonly [number, Buffer] => [4, Buffer.from(new Uint32Array([n]).buffer)]
function list(type: number, count: number, bytes: Buffer): readonly [number, Buffer] {
  const head = Buffer.alloc(12)
  head.writeUInt32LE(type)
  head.writeBigUInt64LE(BigInt(count), 4)
  return [9, Buffer.concat([head, bytes])]
}

test('facts of a header: numbers, lists of numbers and flags, the size of the vocabulary, and nothing behind it', () => {
  const bytes = gguf({
    'x.block_count': number(3),
    'x.list': list(5, 2, Buffer.from(new Int32Array([7, -1]).buffer)),
    'x.flags': list(7, 3, Buffer.from([1, 0, 1])),
    'tokenizer.ggml.tokens': list(8, 2 ** 40, Buffer.alloc(0)),
    'x.late': number(1)
  })
  expect([...ggufFacts(bytes, 2 ** 50)]).toEqual([
    ['x.block_count', 3],
    ['x.list', [7, -1]],
    ['x.flags', [1, 0, 1]],
    ['tokenizer.ggml.tokens', 2 ** 40]
  ])
})

test('a header that is truncated, or lies about its lengths, gives the facts before the defect', () => {
  const whole = gguf({ 'x.block_count': number(3), 'x.long': list(4, 2 ** 40, Buffer.alloc(8)), 'x.more': number(4) })
  for (let end = 0; end <= whole.length; end++)
    expect(ggufFacts(whole.subarray(0, end), 2 ** 50).size).toBeLessThanOrEqual(1)
  expect(ggufFacts(whole, whole.length).get('x.block_count')).toBe(3)
})
