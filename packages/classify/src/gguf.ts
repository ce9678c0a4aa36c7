import { defined } from './defined.ts'
import { looksLike } from './looks.ts'
import { GGUF_HEAD_BYTES } from './reads.ts'
import type { GgufSummary, HeaderProblem, ReadAt } from './types.ts'

/** Longest key of the format. */
const MAX_KEY_BYTES = 65_535
const MAX_ARRAY_DEPTH = 4
/** Longer texts are skipped: no architecture has such a name. */
const MAX_TEXT_BYTES = 256
const MAX_CONTEXT_KEYS = 64
/** Longer arrays are skipped: no model has so many layers. */
const MAX_NUMBERS = 1024
const MAX_FACTS = 1024
const TOKENS = 'tokenizer.ggml.tokens'

/** Sizes of the value types with fixed length, indexed by their number in the format; 8 is a string, 9 an array. */
const FIXED_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
const FLAG = 7
const STRING = 8
const ARRAY = 9

/** Ends the walk: the rest is beyond the available bytes. */
const BEYOND = Symbol('beyond')
class MalformedGguf extends Error {}

/**
 * Walks over key/values, and keeps nothing of what it skips. Every step consumes bytes, so hostile counts end when the
 * bytes do.
 */
class Walker {
  offset = 4
  readonly #view: DataView
  readonly #bytes: Uint8Array
  readonly #sizeBytes: number
  version = 0
  littleEndian = true

  constructor(bytes: Uint8Array, sizeBytes: number) {
    this.#bytes = bytes
    this.#sizeBytes = sizeBytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Advances, and returns the previous position. */
  take(lengthBytes: number): number {
    if (lengthBytes > this.#sizeBytes - this.offset)
      throw new MalformedGguf(`a length of ${lengthBytes} at byte ${this.offset} goes beyond the file`)
    if (lengthBytes > this.#bytes.length - this.offset) throw BEYOND
    const at = this.offset
    this.offset += lengthBytes
    return at
  }

  u32(): number {
    return this.#view.getUint32(this.take(4), this.littleEndian)
  }

  /** A count or length: 32 bits in version 1, 64 since. Above 2^53 it is inexact, but then too large for any file. */
  count(): number {
    return this.version === 1 ? this.u32() : Number(this.#view.getBigUint64(this.take(8), this.littleEndian))
  }

  /** A string, or undefined when it is longer than `max` or not UTF-8. */
  text(max: number): string | undefined {
    const lengthBytes = this.count()
    const at = this.take(lengthBytes)
    if (lengthBytes > max) return undefined
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(this.#bytes.subarray(at, at + lengthBytes))
    } catch {
      return undefined
    }
  }

  key(): string | undefined {
    const before = this.offset
    const lengthBytes = this.count()
    if (lengthBytes > MAX_KEY_BYTES) throw new MalformedGguf(`a key of ${lengthBytes} bytes at byte ${before}`)
    this.offset = before
    return this.text(MAX_KEY_BYTES)
  }

  /** A text or a whole number, or a few of the latter; undefined for other values, which are skipped. */
  value(type: number): string | number | readonly number[] | undefined {
    if (type === STRING) return this.text(MAX_TEXT_BYTES)
    if (type === ARRAY) return this.#array(1)
    return this.#number(type)
  }

  #number(type: number): number | undefined {
    const at = this.take(fixedBytes(type, this.offset))
    if (type === 0 || type === FLAG) return this.#view.getUint8(at)
    if (type === 1) return this.#view.getInt8(at)
    if (type === 2) return this.#view.getUint16(at, this.littleEndian)
    if (type === 3) return this.#view.getInt16(at, this.littleEndian)
    if (type === 4) return this.#view.getUint32(at, this.littleEndian)
    if (type === 5) return this.#view.getInt32(at, this.littleEndian)
    if (type === 10) return Number(this.#view.getBigUint64(at, this.littleEndian))
    if (type === 11) return Number(this.#view.getBigInt64(at, this.littleEndian))
    return undefined
  }

  /** The length of an array, whose elements come next. */
  arrayLength(): number {
    this.u32()
    return this.count()
  }

  /** A short list of numbers; other arrays are skipped. */
  #array(depth: number): readonly number[] | undefined {
    if (depth > MAX_ARRAY_DEPTH)
      throw new MalformedGguf(`arrays nested deeper than ${MAX_ARRAY_DEPTH} at byte ${this.offset}`)
    const type = this.u32()
    const count = this.count()
    if (type === STRING) for (let i = 0; i < count; i++) this.take(this.count())
    else if (type === ARRAY) for (let i = 0; i < count; i++) this.#array(depth + 1)
    else if (depth === 1 && count <= MAX_NUMBERS)
      return Array.from({ length: count }, () => this.#number(type) ?? Number.NaN)
    else this.take(count * fixedBytes(type, this.offset))
    return undefined
  }
}

function fixedBytes(type: number, offset: number): number {
  const lengthBytes = FIXED_BYTES[type]
  if (!lengthBytes) throw new MalformedGguf(`an unknown value type ${type} at byte ${offset}`)
  return lengthBytes
}

/** Reads the key/values behind the version. `found` has those that came before it throws. */
function readWanted(walker: Walker, found: Map<string, string | number>): void {
  walker.count()
  const keyCount = walker.count()
  let contextKeys = 0
  for (let i = 0; i < keyCount; i++) {
    const key = walker.key()
    const type = walker.u32()
    const value = walker.value(type)
    // Neither a flag nor a list counts as a number.
    if (key === undefined || value === undefined || type === FLAG || typeof value === 'object' || found.has(key))
      continue
    if (WANTED.has(key) || (key.endsWith('.context_length') && ++contextKeys <= MAX_CONTEXT_KEYS)) found.set(key, value)
  }
}

const MAGIC = [0x47, 0x47, 0x55, 0x46]

/**
 * Parses the general key/values at the start of a GGUF (version 1 to 3, either byte order). `head` is the start of the
 * file, of which at most a megabyte is used. Whatever lies beyond is unknown (`complete: false`), not an error.
 */
export function parseGgufHead(head: Uint8Array, sizeBytes: number): GgufSummary | HeaderProblem {
  const problem = (text: string): HeaderProblem => ({
    format: 'unreadable',
    problem: text,
    looksLike: looksLike(head, sizeBytes)
  })
  if (MAGIC.some((byte, at) => head[at] !== byte)) return problem('the magic "GGUF" is missing')
  const walker = new Walker(head, sizeBytes)
  const cut = (text: string): HeaderProblem => ({
    format: 'unreadable',
    problem: text,
    looksLike: 'a damaged or truncated GGUF file'
  })
  const found = new Map<string, string | number>()
  let complete = false
  try {
    const word = readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return cut(`the version is ${word}, not 1 to 3`)
    readWanted(walker, found)
    complete = true
  } catch (error) {
    if (error instanceof MalformedGguf) return cut(error.message)
    if (error !== BEYOND) throw error
    if (head.length >= sizeBytes) return cut(`the file ends within its key/values, at byte ${sizeBytes}`)
    if (walker.version === 0) return cut('the header is incomplete')
  }
  const text = (key: string): string | undefined => {
    const value = found.get(key)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const whole = (key: string): number | undefined => {
    const value = found.get(key)
    return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
  }
  const architecture = text('general.architecture')
  return {
    format: 'gguf',
    version: walker.version as 1 | 2 | 3,
    bigEndian: !walker.littleEndian,
    complete,
    ...defined({
      type: text('general.type'),
      architecture,
      contextLength: architecture === undefined ? undefined : whole(`${architecture}.context_length`),
      splitNo: whole('split.no'),
      splitCount: whole('split.count'),
      fileType: whole('general.file_type')
    })
  }
}

function readVersion(walker: Walker): number {
  const word = walker.u32()
  walker.littleEndian = word >= 1 && word <= 3
  walker.version = walker.littleEndian ? word : swap32(word)
  return word
}

/** Key/values of a GGUF: texts, numbers, flags as 0 and 1, short lists of these; of the vocabulary its size. */
export type GgufFacts = ReadonlyMap<string, string | number | readonly number[]>

/** The key/values before the vocabulary, as far as `head` has them and they are well-formed; at most 1,024. */
export function ggufFacts(head: Uint8Array, sizeBytes: number): GgufFacts {
  const found = new Map<string, string | number | readonly number[]>()
  if (MAGIC.some((byte, at) => head[at] !== byte)) return found
  const walker = new Walker(head, sizeBytes)
  try {
    readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return found
    walker.count()
    for (let left = Math.min(walker.count(), MAX_FACTS); left > 0; left--) {
      const key = walker.key()
      const type = walker.u32()
      const value = key === TOKENS && type === ARRAY ? walker.arrayLength() : walker.value(type)
      if (key !== undefined && value !== undefined) found.set(key, value)
      if (key === TOKENS) break
    }
  } catch (error) {
    if (!(error instanceof MalformedGguf) && error !== BEYOND) throw error
  }
  return found
}

const WANTED = new Set(['general.type', 'general.architecture', 'general.file_type', 'split.no', 'split.count'])

const swap32 = (word: number): number =>
  (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0

/** What the start of a GGUF says, by its general keys; what cannot be read is a value. @throws only what `readAt` throws */
export const readGgufHead = async (readAt: ReadAt, sizeBytes: number): Promise<GgufSummary | HeaderProblem> =>
  parseGgufHead(await readAt(0, Math.min(sizeBytes, GGUF_HEAD_BYTES)), sizeBytes)
