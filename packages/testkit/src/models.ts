import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Makers of small, valid model files: real headers and tensors; equal options give equal bytes. */

/** Pseudo-random bytes determined by the seed (xorshift). */
export function seededBytes(sizeBytes: number, seed: number): Buffer {
  const words = new Uint32Array(Math.ceil(sizeBytes / 4))
  let state = (seed * 2654435761 + 0x9e3779b9) >>> 0 || 1
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[i] = state
  }
  return Buffer.from(words.buffer, 0, sizeBytes)
}

/** Bytes per block, elements per block, and the type's number in a GGUF file. */
const GGUF_TYPES = {
  F32: { id: 0, blockBytes: 4, blockSize: 1 },
  F16: { id: 1, blockBytes: 2, blockSize: 1 },
  Q4_0: { id: 2, blockBytes: 18, blockSize: 32 },
  Q8_0: { id: 8, blockBytes: 34, blockSize: 32 },
  Q4_K: { id: 12, blockBytes: 144, blockSize: 256 },
  BF16: { id: 30, blockBytes: 2, blockSize: 1 }
} as const

export type GgufType = keyof typeof GGUF_TYPES
/** Whole numbers become u32, others f32; for readers that require another type it can be given. */
export type GgufValue =
  | string
  | number
  | boolean
  | readonly string[]
  | Float32Array
  | Int32Array
  | { readonly u16: number }
  | { readonly i32: number }

export interface GgufTensor {
  readonly name: string
  /** Fastest dimension first, a multiple of the type's block size. */
  readonly shape: readonly number[]
  readonly type: GgufType
  /** Its bytes. Default: generated from the seed, which is enough for readers of headers. */
  readonly data?: Uint8Array
}

export interface GgufOptions {
  readonly metadata?: Readonly<Record<string, GgufValue>>
  readonly tensors?: readonly GgufTensor[]
  readonly seed?: number
}

const ALIGNMENT = 32

/** A GGUF file, version 3, little-endian. In the metadata whole numbers become u32, others f32. */
export function makeGguf({ metadata = {}, tensors = tinyTensors('Q8_0'), seed = 1 }: GgufOptions = {}): Buffer {
  const all: Record<string, GgufValue> = {
    'general.architecture': 'llama',
    'general.alignment': ALIGNMENT,
    ...metadata
  }
  const parts: Buffer[] = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(Object.keys(all).length)]
  for (const [key, value] of Object.entries(all)) parts.push(text(key), ggufValue(value))
  let offset = 0
  const data: Uint8Array[] = []
  for (const [i, { name, shape, type, data: given }] of tensors.entries()) {
    const { id, blockBytes, blockSize } = GGUF_TYPES[type]
    const elements = shape.reduce((product, n) => product * n, 1)
    if ((shape[0] ?? 1) % blockSize !== 0) throw new RangeError(`${name}: ${type} needs a multiple of ${blockSize}`)
    const sizeBytes = (elements / blockSize) * blockBytes
    parts.push(text(name), u32(shape.length), ...shape.map(u64), u32(id), u64(offset))
    const padded = align(sizeBytes)
    if (given !== undefined && given.length !== sizeBytes)
      throw new RangeError(`${name}: ${sizeBytes} bytes are needed`)
    data.push(given ?? seededBytes(sizeBytes, seed * 1000 + i), Buffer.alloc(padded - sizeBytes))
    offset += padded
  }
  const head = Buffer.concat(parts)
  return Buffer.concat([head, Buffer.alloc(align(head.length) - head.length), ...data])
}

const HEAD_BYTES = 128

/** The first 128 bytes of a GGUF of `sizeBytes`, whose one tensor is the rest. */
export function makeGgufHead(sizeBytes: number): Buffer {
  const count = Math.floor((sizeBytes - HEAD_BYTES) / GGUF_TYPES.F16.blockBytes)
  const head = Buffer.alloc(HEAD_BYTES)
  Buffer.concat([
    ...[Buffer.from('GGUF'), u32(3), u64(1), u64(1), text('general.architecture'), ggufValue('llama')],
    ...[text('all'), u32(1), u64(count), u32(GGUF_TYPES.F16.id), u64(0)]
  ]).copy(head)
  return head
}

const align = (n: number): number => Math.ceil(n / ALIGNMENT) * ALIGNMENT

function u32(n: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(n)
  return bytes
}

function u64(n: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(n))
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([u64(bytes.length), bytes])
}

function ggufValue(value: GgufValue): Buffer {
  if (typeof value === 'string') return Buffer.concat([u32(8), text(value)])
  if (typeof value === 'boolean') return Buffer.concat([u32(7), Buffer.from([value ? 1 : 0])])
  if (value instanceof Float32Array || value instanceof Int32Array) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    return Buffer.concat([u32(9), u32(value instanceof Float32Array ? 6 : 5), u64(value.length), bytes])
  }
  if (typeof value === 'object' && 'u16' in value) return Buffer.concat([u32(2), u32(value.u16).subarray(0, 2)])
  if (typeof value === 'object' && 'i32' in value) return Buffer.concat([u32(5), u32(value.i32)])
  if (typeof value !== 'number') return Buffer.concat([u32(9), u32(8), u64(value.length), ...value.map(text)])
  if (Number.isInteger(value)) return Buffer.concat([u32(4), u32(value)])
  const float = Buffer.alloc(4)
  float.writeFloatLE(value)
  return Buffer.concat([u32(6), float])
}

/** The tensors of a tiny llama for tests, in one type (norms are F32, as converters write them). */
export function tinyTensors(type: GgufType, width = 256, layers = 2): GgufTensor[] {
  const tensors: GgufTensor[] = [{ name: 'token_embd.weight', shape: [width, 512], type }]
  for (let i = 0; i < layers; i++) {
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_down', 'ffn_up']) {
      tensors.push({ name: `blk.${i}.${name}.weight`, shape: [width, width], type })
    }
    tensors.push({ name: `blk.${i}.attn_norm.weight`, shape: [width], type: 'F32' })
  }
  return [...tensors, { name: 'output_norm.weight', shape: [width], type: 'F32' }]
}

const DTYPE_BYTES = { F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I8: 1, U8: 1, BOOL: 1, F8_E4M3: 1 } as const

export interface SafetensorsTensor {
  readonly name: string
  readonly dtype: keyof typeof DTYPE_BYTES
  readonly shape: readonly number[]
}

export interface SafetensorsOptions {
  readonly tensors?: readonly SafetensorsTensor[]
  /** `__metadata__`; default `{"format":"pt"}`. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly seed?: number
}

/** A safetensors file; the header is padded with blanks to 8 bytes, as the reference writer does. */
export function makeSafetensors(options: SafetensorsOptions = {}): Buffer {
  const { tensors = tinySafetensors(), metadata = { format: 'pt' }, seed = 1 } = options
  const header: Record<string, unknown> = { __metadata__: metadata }
  const data: Buffer[] = []
  let offset = 0
  for (const [i, { name, dtype, shape }] of tensors.entries()) {
    const sizeBytes = shape.reduce((product, n) => product * n, DTYPE_BYTES[dtype])
    header[name] = { dtype, shape, data_offsets: [offset, offset + sizeBytes] }
    data.push(seededBytes(sizeBytes, seed * 1000 + i))
    offset += sizeBytes
  }
  const json = Buffer.from(JSON.stringify(header))
  const padding = Buffer.alloc((8 - (json.length % 8)) % 8, ' ')
  return Buffer.concat([u64(json.length + padding.length), json, padding, ...data])
}

const tinySafetensors = (width = 256, dtype: SafetensorsTensor['dtype'] = 'BF16'): SafetensorsTensor[] => [
  { name: 'model.embed_tokens.weight', dtype, shape: [512, width] },
  { name: 'model.layers.0.self_attn.q_proj.weight', dtype, shape: [width, width] },
  { name: 'model.layers.0.mlp.gate_proj.weight', dtype, shape: [2 * width, width] },
  { name: 'model.norm.weight', dtype, shape: [width] }
]

const MIT = `MIT License

Copyright (c) 2026 the authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

const words = Array.from({ length: 512 }, (_, i) => `token${i}`)

export interface ModelFolderOptions {
  /** Base name of the GGUF files. Default `tiny`. */
  readonly name?: string
  /** GGUF files to make, by quant token. Default `q8_0` and `q4_k_m`. */
  readonly ggufs?: Readonly<Record<string, GgufType>>
  /** Width of the tensors, a multiple of 256; the files grow with its square. Default 256. */
  readonly width?: number
  /** Additional files, or replacements of the usual ones; undefined omits one. */
  readonly files?: Readonly<Record<string, string | Uint8Array | undefined>>
  readonly seed?: number
}

/**
 * Writes a whole model into `folder` (created if absent): GGUFs, `model.safetensors` (bf16), `config.json`, tokenizer,
 * chat template, `LICENSE` (MIT) and a README that an import skips.
 * @returns the relative paths written, sorted
 */
export function makeModelFolder(folder: string, options: ModelFolderOptions = {}): string[] {
  const { name = 'tiny', ggufs = { q8_0: 'Q8_0', q4_k_m: 'Q4_K' }, width = 256, seed = 1 } = options
  const config = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: width,
    num_hidden_layers: 2,
    max_position_embeddings: 2048,
    vocab_size: words.length,
    torch_dtype: 'bfloat16'
  }
  const vocab = Object.fromEntries(words.map((word, i) => [word, i]))
  const files: Record<string, string | Uint8Array | undefined> = {
    'config.json': `${JSON.stringify(config, null, 2)}\n`,
    'tokenizer.json': JSON.stringify({ version: '1.0', model: { type: 'WordLevel', vocab, unk_token: 'token0' } }),
    'tokenizer_config.json': `${JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast', unk_token: 'token0' })}\n`,
    'chat_template.jinja': '{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}',
    LICENSE: MIT,
    'README.md': `# ${name}\n\nRandom weights with valid headers, for trying things out.\n`,
    'model.safetensors': makeSafetensors({ tensors: tinySafetensors(width), seed })
  }
  for (const [quant, type] of Object.entries(ggufs)) {
    files[`${name}-${quant}.gguf`] = makeGguf({
      metadata: {
        'general.name': name,
        'llama.context_length': 2048,
        'llama.embedding_length': width,
        'tokenizer.ggml.tokens': words
      },
      tensors: tinyTensors(type, width),
      seed
    })
  }
  const written: string[] = []
  for (const [path, content] of Object.entries({ ...files, ...options.files })) {
    if (content === undefined) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
    written.push(path)
  }
  return written.sort()
}
