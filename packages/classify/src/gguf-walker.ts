/** Longest key of the format. */
const MAX_KEY_BYTES = 65_535
const MAX_ARRAY_DEPTH = 4
/** Longer texts are skipped: no architecture has such a name. */
const MAX_TEXT_BYTES = 256
/** Longer arrays are skipped: no model has so many layers. */
const MAX_NUMBERS = 1024

/** Sizes of the value types with fixed length, indexed by their number in the format; 8 is a string, 9 an array. */
const FIXED_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
export const FLAG = 7
const STRING = 8
export const ARRAY = 9

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Ends the walk: the rest is beyond the available bytes. */
export const BEYOND = Symbol('beyond')
/** The bytes break the format; the message says how. */
export class MalformedGguf extends Error {}

/**
 * Walks over key/values, and keeps nothing of what it skips. Every step consumes bytes, so hostile counts end when the
 * bytes do.
 */
export class GgufWalker {
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
    return this.version === 1 ? this.u32() : this.u64()
  }

  /** Above 2^53 it is inexact. */
  u64(): number {
    return Number(this.#view.getBigUint64(this.take(8), this.littleEndian))
  }

  /** A string, or undefined when it is longer than `max` or not UTF-8. */
  text(max: number): string | undefined {
    const lengthBytes = this.count()
    const at = this.take(lengthBytes)
    if (lengthBytes > max) return undefined
    try {
      return utf8.decode(this.#bytes.subarray(at, at + lengthBytes))
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

const MAGIC = [0x47, 0x47, 0x55, 0x46]

export const hasMagic = (head: Uint8Array): boolean => MAGIC.every((byte, at) => head[at] === byte)

/** Sets version and byte order. @returns the word that gives them */
export function readVersion(walker: GgufWalker): number {
  const word = walker.u32()
  walker.littleEndian = word >= 1 && word <= 3
  walker.version = walker.littleEndian ? word : swap32(word)
  return word
}

const swap32 = (word: number): number =>
  (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0

/** The values of a header's keys, each of the kind that is asked for: text that is not empty, or a whole number from 0. */
export const valuesOf = (found: ReadonlyMap<string, string | number>) => ({
  text: (key: string): string | undefined => {
    const value = found.get(key)
    return typeof value === 'string' && value !== '' ? value : undefined
  },
  whole: (key: string): number | undefined => {
    const value = found.get(key)
    return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
  }
})
