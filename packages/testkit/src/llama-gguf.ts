import { type GgufTensor, type GgufValue, makeGguf, seededBytes } from './models.ts'

const WIDTH = 32
const FEED_FORWARD = 64
const LAYERS = 2
const HEADS = 2
const NORMAL = 1
const UNKNOWN = 2
const CONTROL = 3
const BYTE = 6

/** A vocabulary of bytes and letters, as SentencePiece models have it. */
function vocabulary(): { readonly tokens: string[]; readonly types: number[]; readonly scores: number[] } {
  const special = ['<unk>', '<s>', '</s>']
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`)
  const letters = ['\u2581', ...'abcdefghijklmnopqrstuvwxyz']
  const padding = Array.from({ length: 2 }, (_, i) => `<pad${i}>`)
  return {
    tokens: [...special, ...bytes, ...letters, ...padding],
    types: [
      UNKNOWN,
      CONTROL,
      CONTROL,
      ...bytes.map(() => BYTE),
      ...letters.map(() => NORMAL),
      ...padding.map(() => CONTROL)
    ],
    scores: [0, 0, 0, ...bytes.map(() => 0), ...letters.map((_, i) => -i - 1), ...padding.map(() => 0)]
  }
}

/** Small numbers that depend on the seed alone. */
function floats(count: number, seed: number): Uint8Array {
  const bytes = seededBytes(count, seed)
  const values = Float32Array.from(bytes, (byte) => (byte - 127.5) / 1_000)
  return new Uint8Array(values.buffer)
}

function tensors(seed: number, vocabularySize: number): GgufTensor[] {
  const made: GgufTensor[] = []
  const add = (name: string, ...shape: number[]): void => {
    const count = shape.reduce((product, n) => product * n, 1)
    made.push({ name, shape, type: 'F32', data: floats(count, seed * 100 + made.length) })
  }
  add('token_embd.weight', WIDTH, vocabularySize)
  for (let i = 0; i < LAYERS; i++) {
    add(`blk.${i}.attn_norm.weight`, WIDTH)
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) add(`blk.${i}.${name}.weight`, WIDTH, WIDTH)
    add(`blk.${i}.ffn_norm.weight`, WIDTH)
    add(`blk.${i}.ffn_gate.weight`, WIDTH, FEED_FORWARD)
    add(`blk.${i}.ffn_up.weight`, WIDTH, FEED_FORWARD)
    add(`blk.${i}.ffn_down.weight`, FEED_FORWARD, WIDTH)
  }
  add('output_norm.weight', WIDTH)
  add('output.weight', WIDTH, vocabularySize)
  return made
}

/**
 * A llama that llama.cpp loads and evaluates: two layers of random numbers and a vocabulary of bytes and letters, about
 * 130 KB. With `shards` it is split as `gguf-split` does: all metadata in the first one, tensors spread over them.
 * @returns the files in their order
 */
export function makeLlamaGgufs(options: { readonly shards?: number; readonly seed?: number } = {}): Buffer[] {
  const { shards = 1, seed = 1 } = options
  const { tokens, types, scores } = vocabulary()
  const metadata: Record<string, GgufValue> = {
    'general.name': `tiny llama ${seed}`,
    'llama.context_length': 128,
    'llama.embedding_length': WIDTH,
    'llama.block_count': LAYERS,
    'llama.feed_forward_length': FEED_FORWARD,
    'llama.attention.head_count': HEADS,
    'llama.attention.head_count_kv': HEADS,
    'llama.attention.layer_norm_rms_epsilon': 1.5e-5,
    'llama.rope.dimension_count': WIDTH / HEADS,
    'llama.vocab_size': tokens.length,
    'tokenizer.ggml.model': 'llama',
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.scores': Float32Array.from(scores),
    'tokenizer.ggml.token_type': Int32Array.from(types),
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.eos_token_id': 2,
    'tokenizer.ggml.unknown_token_id': 0
  }
  const all = tensors(seed, tokens.length)
  if (shards === 1) return [makeGguf({ metadata, tensors: all })]
  const each = Math.ceil(all.length / shards)
  return Array.from({ length: shards }, (_, i) => {
    const split: Record<string, GgufValue> = {
      'split.no': { u16: i },
      'split.count': { u16: shards },
      'split.tensors.count': { i32: all.length }
    }
    return makeGguf({
      metadata: i === 0 ? { ...metadata, ...split } : split,
      tensors: all.slice(i * each, (i + 1) * each)
    })
  })
}
