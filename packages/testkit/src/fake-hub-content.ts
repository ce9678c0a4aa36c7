import { createHash } from 'node:crypto'
import { makeGgufHead } from './models.ts'

/**
 * Content of a fake repository's file: given, or generated from a seed without ever being in memory as a whole. Generated
 * content of 256 bytes or more begins like a GGUF whose one tensor is the rest: weights that runtimes would load.
 */
export type FakeContent = Uint8Array | { readonly seed: number; readonly sizeBytes: number }

const STRIDE = 2 ** 20
const bases = new Map<number, Buffer>()

/** One megabyte of pseudo-random bytes per seed (xorshift), the basis of all seeded files. */
function baseOf(seed: number): Buffer {
  const known = bases.get(seed)
  if (known) return known
  const base = Buffer.allocUnsafe(STRIDE)
  let x = Math.imul(seed + 1, 0x9e3779b1) || 1
  for (let i = 0; i < STRIDE; i += 4) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    base.writeInt32LE(x | 0, i)
  }
  if (bases.size > 64) bases.clear()
  bases.set(seed, base)
  return base
}

const MIN_GGUF_BYTES = 256
const headOf = ({ sizeBytes }: { readonly sizeBytes: number }): Buffer | undefined =>
  sizeBytes < MIN_GGUF_BYTES ? undefined : makeGgufHead(sizeBytes)

export const contentSize = (content: FakeContent): number =>
  content instanceof Uint8Array ? content.length : content.sizeBytes

/**
 * `[start, end)`, at most to the end of the stride that contains `start`. Strides differ in their first eight bytes.
 */
export function contentSlice(content: FakeContent, start: number, end: number): Uint8Array {
  if (content instanceof Uint8Array) return content.subarray(start, end)
  const stride = Math.floor(start / STRIDE)
  const to = Math.min(end, (stride + 1) * STRIDE)
  const base = baseOf(content.seed)
  const from = start - stride * STRIDE
  const head = stride === 0 ? headOf(content) : undefined
  if (head !== undefined && from < head.length) {
    const copy = Buffer.from(base.subarray(from, to))
    head.copy(copy, 0, from)
    return copy
  }
  if (from >= 8) return base.subarray(from, to - stride * STRIDE)
  const copy = Buffer.from(base.subarray(from, to - stride * STRIDE))
  const stamp = Buffer.alloc(8)
  stamp.writeBigUInt64LE((BigInt(stride) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn)
  for (let i = 0; i < copy.length && from + i < 8; i++) copy[i] = (copy[i] as number) ^ (stamp[from + i] as number)
  return copy
}

export function* contentChunks(content: FakeContent, start = 0, end = contentSize(content)): Generator<Uint8Array> {
  for (let at = start; at < end; ) {
    const chunk = contentSlice(content, at, end)
    yield chunk
    at += chunk.length
  }
}

export interface ContentNames {
  readonly sha256: string
  readonly gitBlobSha1: string
}

export function nameContent(content: FakeContent): ContentNames {
  const sha256 = createHash('sha256')
  const sha1 = createHash('sha1').update(`blob ${contentSize(content)}\0`)
  for (const chunk of contentChunks(content)) {
    sha256.update(chunk)
    sha1.update(chunk)
  }
  return { sha256: sha256.digest('hex'), gitBlobSha1: sha1.digest('hex') }
}

/** The text that git stores for a file in LFS, and that text's name in git. */
export function lfsPointer(sha256: string, sizeBytes: number): { oid: string; pointerSize: number } {
  const text = Buffer.from(`version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${sizeBytes}\n`)
  return { oid: nameContent(text).gitBlobSha1, pointerSize: text.length }
}
