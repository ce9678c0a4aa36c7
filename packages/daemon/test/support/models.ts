import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Bytes that differ from seed to seed. */
export function seededBytes(sizeBytes: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes)
  let state = (seed * 2654435761 + 1) >>> 0
  for (let i = 0; i < sizeBytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

/** One tensor of `values` BF16 numbers. */
export function safetensors(values: number, seed = 1, dtype = 'BF16'): Buffer {
  const data = seededBytes(values * 2, seed)
  const header = Buffer.from(JSON.stringify({ w: { dtype, shape: [values], data_offsets: [0, data.length] } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, data])
}

/** Version 3, no tensors and no keys, then `sizeBytes` of filling. */
export const gguf = (sizeBytes: number, seed = 2): Buffer =>
  Buffer.concat([Buffer.from('GGUF'), Buffer.from([3, 0, 0, 0]), Buffer.alloc(16), seededBytes(sizeBytes, seed)])

export type Files = Readonly<Record<string, string | Buffer>>

/** A small repository with an entry of most kinds. */
export const MODEL: Files = {
  'model.safetensors': safetensors(40_000),
  'tiny-q8_0.gguf': gguf(70_000),
  'config.json': '{"model_type":"llama","max_position_embeddings":4096}\n',
  'tokenizer.json': '{"version":"1.0"}',
  'tokenizer_config.json': '{}',
  'chat_template.jinja': '{{ messages }}',
  'modeling_tiny.py': 'pass\n',
  LICENSE: 'do what you like, but say so\n',
  'README.md': '# tiny\n',
  'sub/config.json': '{}'
}

/** Writes files below `folder` in the order given. */
export function writeFiles(folder: string, files: Files): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  return folder
}
