import { type GgufTensor, type GgufValue, makeGguf, seededBytes } from './models.ts'

const WIDTH = 32
const FEED_FORWARD = 64
const LAYERS = 2
const HEADS = 2
const NORMAL = 1
const UNKNOWN = 2
const CONTROL = 3
const BYTE = 6

/** A vocabulary of bytes and letters, like those of SentencePiece models. */
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

/** Small numbers determined by the seed. */
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
 * A llama model that llama.cpp can load and evaluate: two layers of random numbers and a vocabulary of bytes and
 * letters, about 130 KB. With `shards` it is split like `gguf-split` does: all metadata in the first file, tensors
 * distributed over all.
 * @returns the files in order
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

const ADAPTER_RANK = 4

/** A LoRA for the llama of {@link makeLlamaGgufs}, as `convert_lora_to_gguf` writes one: pairs of small matrices for queries and values. */
export function makeLoraGguf(seed = 50): Buffer {
  const made: GgufTensor[] = []
  // larger than the model's own numbers, so that the result changes
  const add = (name: string, ...shape: number[]): void => {
    const count = shape.reduce((product, n) => product * n, 1)
    const values = Float32Array.from(seededBytes(count, seed * 100 + made.length), (byte) => (byte - 127.5) / 50)
    made.push({ name, shape, type: 'F32', data: new Uint8Array(values.buffer) })
  }
  for (let i = 0; i < LAYERS; i++) {
    for (const name of ['attn_q', 'attn_v']) {
      add(`blk.${i}.${name}.weight.lora_a`, WIDTH, ADAPTER_RANK)
      add(`blk.${i}.${name}.weight.lora_b`, ADAPTER_RANK, WIDTH)
    }
  }
  const metadata = { 'general.type': 'adapter', 'adapter.type': 'lora', 'adapter.lora.alpha': 8.5 }
  return makeGguf({ metadata, tensors: made })
}

const EYE_WIDTH = 16
const PATCH = 14
/** Width and height in pixels of the pictures that {@link makeProjectorGguf} accepts. */
export const PICTURE_SIDE = 28

/** A vision projector for the llama of {@link makeLlamaGgufs}: two layers and a multilayer perceptron, like LLaVA's. */
export function makeProjectorGguf(seed = 60): Buffer {
  const made: GgufTensor[] = []
  const add = (name: string, ...shape: number[]): void => {
    const count = shape.reduce((product, n) => product * n, 1)
    made.push({ name, shape, type: 'F32', data: floats(count, seed * 100 + made.length) })
  }
  const both = (name: string, ...shape: [number, ...number[]]): void => {
    add(`${name}.weight`, ...shape)
    add(`${name}.bias`, shape.at(-1)!)
  }
  add('v.patch_embd.weight', PATCH, PATCH, 3, EYE_WIDTH)
  add('v.class_embd', EYE_WIDTH)
  add('v.position_embd.weight', EYE_WIDTH, (PICTURE_SIDE / PATCH) ** 2 + 1)
  both('v.pre_ln', EYE_WIDTH)
  for (let i = 0; i < LAYERS; i++) {
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_out']) both(`v.blk.${i}.${name}`, EYE_WIDTH, EYE_WIDTH)
    both(`v.blk.${i}.ln1`, EYE_WIDTH)
    both(`v.blk.${i}.ln2`, EYE_WIDTH)
    // in files of this kind the first of the two is named "down"
    both(`v.blk.${i}.ffn_down`, EYE_WIDTH, 2 * EYE_WIDTH)
    both(`v.blk.${i}.ffn_up`, 2 * EYE_WIDTH, EYE_WIDTH)
  }
  both('mm.0', EYE_WIDTH, WIDTH)
  both('mm.2', WIDTH, WIDTH)
  return makeGguf({
    metadata: {
      'general.architecture': 'clip',
      'general.type': 'mmproj',
      'clip.has_vision_encoder': true,
      'clip.projector_type': 'mlp',
      'clip.use_gelu': true,
      'clip.vision.image_size': PICTURE_SIDE,
      'clip.vision.patch_size': PATCH,
      'clip.vision.embedding_length': EYE_WIDTH,
      'clip.vision.feed_forward_length': 2 * EYE_WIDTH,
      'clip.vision.projection_dim': WIDTH,
      'clip.vision.block_count': LAYERS,
      'clip.vision.attention.head_count': HEADS,
      'clip.vision.attention.layer_norm_epsilon': 1.5e-5,
      'clip.vision.image_mean': Float32Array.of(0.5, 0.5, 0.5),
      'clip.vision.image_std': Float32Array.of(0.5, 0.5, 0.5)
    },
    tensors: made
  })
}
