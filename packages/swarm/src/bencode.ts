import { SwarmError } from './errors.ts'

/**
 * A decoded value. Byte strings are views into the input. Integers are numbers where they are safe, bigints up to 64 bits
 * (−2^63 … 2^64−1) beyond that.
 */
export type BencodeValue = number | bigint | Uint8Array | BencodeList | BencodeDictionary
export type BencodeList = readonly BencodeValue[]

/** Why {@link decodeBencode} refused its input. */
export type BencodeReason =
  | 'too-large'
  | 'truncated'
  | 'unexpected-byte'
  | 'integer-format'
  | 'integer-range'
  | 'string-length'
  | 'key-not-string'
  | 'key-order'
  | 'key-duplicate'
  | 'missing-value'
  | 'depth'
  | 'tokens'
  | 'trailing'
  | 'not-encodable'

export interface DecodeOptions {
  /** Default 10,000,000. */
  readonly maxBytes?: number
  /** Containers within containers; default 100. */
  readonly maxDepth?: number
  /** Values and keys together; default 2,000,000. */
  readonly maxTokens?: number
  /**
   * Accept newlines (CR, LF) after the root value: published `.torrent` FILES have them, nothing on the wire does.
   * Default false.
   */
  readonly allowTrailing?: boolean
}

/** Byte-wise comparison, as bencoding sorts keys: negative, zero or positive. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = a[i]! - b[i]!
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const encoder = new TextEncoder()
const toKey = (key: string | Uint8Array): Uint8Array => (typeof key === 'string' ? encoder.encode(key) : key)

/** A decoded dictionary: raw byte keys in sorted order, with the span that each value was read from. */
export class BencodeDictionary {
  readonly #source: Uint8Array
  readonly #keys: Uint8Array[] = []
  readonly #values: BencodeValue[] = []
  readonly #spans: number[] = []

  constructor(source: Uint8Array) {
    this.#source = source
  }

  get size(): number {
    return this.#keys.length
  }

  /** Keys in their (sorted) order. */
  keys(): readonly Uint8Array[] {
    return this.#keys
  }

  *entries(): IterableIterator<[key: Uint8Array, value: BencodeValue]> {
    for (let i = 0; i < this.#keys.length; i++) yield [this.#keys[i]!, this.#values[i]!]
  }

  has(key: string | Uint8Array): boolean {
    return this.#find(key) >= 0
  }

  get(key: string | Uint8Array): BencodeValue | undefined {
    return this.#values[this.#find(key)]
  }

  /** The value's bytes exactly as received, e.g. the `info` dictionary to be hashed (BEP 3, BEP 52). */
  span(key: string | Uint8Array): Uint8Array | undefined {
    const index = this.#find(key)
    return index < 0 ? undefined : this.#source.subarray(this.#spans[2 * index], this.#spans[2 * index + 1])
  }

  #find(key: string | Uint8Array): number {
    const wanted = toKey(key)
    let low = 0
    let high = this.#keys.length - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const order = compareBytes(this.#keys[middle]!, wanted)
      if (order === 0) return middle
      if (order < 0) low = middle + 1
      else high = middle - 1
    }
    return -1
  }

  /** For the decoder: keys come sorted and unique. @internal */
  append(key: Uint8Array, value: BencodeValue, start: number, end: number): void {
    this.#keys.push(key)
    this.#values.push(value)
    this.#spans.push(start, end)
  }
}

const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const COLON = 0x3a
const MINUS = 0x2d
const LETTER_D = 0x64
const LETTER_E = 0x65
const LETTER_I = 0x69
const LETTER_L = 0x6c
const MIN_INT64 = -(2n ** 63n)
const MAX_UINT64 = 2n ** 64n - 1n

const fail = (reason: BencodeReason, offset: number, message: string): SwarmError =>
  new SwarmError('E_BENCODE', reason, `bencoded data, byte ${offset}: ${message}`, { details: { offset } })

interface Frame {
  readonly container: BencodeValue[] | BencodeDictionary
  readonly start: number
  key: Uint8Array | undefined
  lastKey: Uint8Array | undefined
}

/** Reads one value at a time, with an explicit stack: depth costs heap, never the call stack. */
class Decoder {
  readonly #bytes: Uint8Array
  readonly #maxDepth: number
  readonly #maxTokens: number
  #at = 0
  #tokens = 0

  constructor(bytes: Uint8Array, options: DecodeOptions) {
    const maxBytes = options.maxBytes ?? 10_000_000
    if (bytes.length > maxBytes) throw fail('too-large', maxBytes, `${bytes.length} bytes, at most ${maxBytes} are accepted`)
    this.#bytes = bytes
    this.#maxDepth = options.maxDepth ?? 100
    this.#maxTokens = options.maxTokens ?? 2_000_000
  }

  get at(): number {
    return this.#at
  }

  root(): BencodeValue {
    const stack: Frame[] = []
    for (;;) {
      const frame = stack.at(-1)
      const byte = this.#bytes[this.#at]
      if (byte === undefined) throw fail('truncated', this.#at, 'the data ends within a value')
      const start = this.#at
      let value: BencodeValue
      let valueStart = start
      if (byte === LETTER_E && frame !== undefined) {
        if (frame.key !== undefined) throw fail('missing-value', start, 'a dictionary key has no value')
        this.#at++
        stack.pop()
        value = frame.container
        valueStart = frame.start
      } else {
        if (++this.#tokens > this.#maxTokens) throw fail('tokens', start, `more than ${this.#maxTokens} values`)
        if (frame !== undefined && frame.container instanceof BencodeDictionary && frame.key === undefined) {
          this.#readKey(frame, byte)
          continue
        }
        if (byte === LETTER_D || byte === LETTER_L) {
          if (stack.length >= this.#maxDepth) throw fail('depth', start, `nested deeper than ${this.#maxDepth}`)
          this.#at++
          const container = byte === LETTER_D ? new BencodeDictionary(this.#bytes) : []
          stack.push({ container, start, key: undefined, lastKey: undefined })
          continue
        }
        if (byte === LETTER_I) value = this.#integer()
        else if (byte >= DIGIT_0 && byte <= DIGIT_9) value = this.#string()
        else throw fail('unexpected-byte', start, 'expected an integer, a string, a list or a dictionary')
      }
      const parent = stack.at(-1)
      if (parent === undefined) return value
      if (parent.container instanceof BencodeDictionary) {
        parent.container.append(parent.key!, value, valueStart, this.#at)
        parent.lastKey = parent.key
        parent.key = undefined
      } else parent.container.push(value)
    }
  }

  #readKey(frame: Frame, byte: number): void {
    const start = this.#at
    if (byte < DIGIT_0 || byte > DIGIT_9) throw fail('key-not-string', start, 'a dictionary key is a byte string')
    const key = this.#string()
    if (frame.lastKey !== undefined) {
      const order = compareBytes(frame.lastKey, key)
      if (order === 0) throw fail('key-duplicate', start, 'a dictionary key occurs twice')
      if (order > 0) throw fail('key-order', start, 'dictionary keys are sorted by their bytes')
    }
    frame.key = key
  }

  #integer(): number | bigint {
    const start = this.#at
    let at = start + 1
    const negative = this.#bytes[at] === MINUS
    if (negative) at++
    const first = at
    // 20 digits hold every 64-bit integer; anything longer is refused before it is read.
    while (at - first <= 20 && this.#isDigit(at)) at++
    const digits = at - first
    if (digits > 20) throw fail('integer-range', start, 'an integer has at most 64 bits')
    const end = this.#bytes[at]
    if (end === undefined) throw fail('truncated', at, 'the data ends within an integer')
    if (end !== LETTER_E || digits === 0) throw fail('integer-format', start, 'an integer is i<digits>e')
    if (this.#bytes[first] === DIGIT_0 && (digits > 1 || negative)) {
      throw fail('integer-format', start, 'an integer has no leading zeros and no negative zero')
    }
    this.#at = at + 1
    let value = 0
    if (digits <= 15) {
      for (let i = first; i < at; i++) value = value * 10 + (this.#bytes[i]! - DIGIT_0)
      return negative ? -value : value
    }
    let big = 0n
    for (let i = first; i < at; i++) big = big * 10n + BigInt(this.#bytes[i]! - DIGIT_0)
    if (negative) big = -big
    if (big < MIN_INT64 || big > MAX_UINT64) throw fail('integer-range', start, 'an integer has at most 64 bits')
    value = Number(big)
    return Number.isSafeInteger(value) ? value : big
  }

  #string(): Uint8Array {
    const start = this.#at
    let at = start
    let length = 0
    while (this.#isDigit(at)) {
      if (at - start >= 10) throw fail('string-length', start, 'a string is longer than the data')
      length = length * 10 + (this.#bytes[at]! - DIGIT_0)
      at++
    }
    const colon = this.#bytes[at]
    if (colon === undefined) throw fail('truncated', at, 'the data ends within a string')
    if (colon !== COLON) throw fail('string-length', start, 'a string is <length>:<bytes>')
    if (this.#bytes[start] === DIGIT_0 && at - start > 1) {
      throw fail('string-length', start, 'the length of a string has no leading zeros')
    }
    at++
    if (length > this.#bytes.length - at) throw fail('truncated', start, 'a string is longer than the data')
    this.#at = at + length
    return this.#bytes.subarray(at, at + length)
  }

  #isDigit(at: number): boolean {
    const byte = this.#bytes[at]
    return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9
  }
}

/**
 * Decodes exactly one value in canonical form (BEP 3): keys sorted and unique, no leading zeros, nothing behind it.
 * @throws SwarmError `E_BENCODE` with a {@link BencodeReason} and `details.offset`.
 */
export function decodeBencode(bytes: Uint8Array, options: DecodeOptions = {}): BencodeValue {
  const decoder = new Decoder(bytes, options)
  const value = decoder.root()
  let end = decoder.at
  if (options.allowTrailing === true) while (bytes[end] === 0x0a || bytes[end] === 0x0d) end++
  if (end < bytes.length) throw fail('trailing', end, 'data follows the value')
  return value
}

/**
 * Decodes the value that `bytes` begin with, and tells where it ends: messages of the extension protocol have raw
 * bytes behind their dictionary (BEP 9). @throws SwarmError `E_BENCODE`.
 */
export function decodeBencodePrefix(
  bytes: Uint8Array,
  options: Omit<DecodeOptions, 'allowTrailing'> = {}
): { readonly value: BencodeValue; readonly endOffset: number } {
  const decoder = new Decoder(bytes, options)
  const value = decoder.root()
  return { value, endOffset: decoder.at }
}

/** Bytes that are bencoded already, to be embedded as they are. */
export class RawBencode {
  readonly bytes: Uint8Array
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/** What can be encoded. Strings become UTF-8; entries of plain objects whose value is undefined are left out. */
export type Encodable =
  | number
  | bigint
  | string
  | Uint8Array
  | RawBencode
  | BencodeDictionary
  | readonly Encodable[]
  | ReadonlyMap<string | Uint8Array, Encodable>
  | { readonly [key: string]: Encodable | undefined }

const notEncodable = (message: string): SwarmError => new SwarmError('E_BENCODE', 'not-encodable', message)

function sortedEntries(value: object): readonly (readonly [Uint8Array, Encodable])[] {
  const entries: [Uint8Array, Encodable][] = []
  if (value instanceof BencodeDictionary) for (const entry of value.entries()) entries.push(entry)
  else if (value instanceof Map) for (const [key, item] of value) entries.push([toKey(key), item])
  else {
    for (const [key, item] of Object.entries(value as Record<string, Encodable | undefined>)) {
      if (item !== undefined) entries.push([toKey(key), item])
    }
  }
  entries.sort(([a], [b]) => compareBytes(a, b))
  for (let i = 1; i < entries.length; i++) {
    if (compareBytes(entries[i - 1]![0], entries[i]![0]) === 0) throw notEncodable('a dictionary key occurs twice')
  }
  return entries
}

/**
 * Canonical bencoding (BEP 3): keys sorted by their bytes.
 * @throws SwarmError `E_BENCODE`, reason `not-encodable`: unsafe or fractional numbers, lone surrogates, equal keys.
 */
export function encodeBencode(value: Encodable): Uint8Array {
  const chunks: Uint8Array[] = []
  let length = 0
  const put = (chunk: Uint8Array): void => {
    chunks.push(chunk)
    length += chunk.length
  }
  const putText = (text: string): void => put(encoder.encode(text))
  const putBytes = (bytes: Uint8Array): void => {
    putText(`${bytes.length}:`)
    put(bytes)
  }
  const stack: ({ readonly next: () => boolean })[] = []
  const putValue = (item: Encodable): void => {
    if (typeof item === 'string') {
      if (!item.isWellFormed()) throw notEncodable('a string holds a lone surrogate')
      putBytes(encoder.encode(item))
    } else if (typeof item === 'number') {
      if (!Number.isSafeInteger(item)) throw notEncodable(`${item} is not a safe integer`)
      putText(`i${item}e`) // -0 prints as 0
    } else if (typeof item === 'bigint') putText(`i${item}e`)
    else if (item instanceof Uint8Array) putBytes(item)
    else if (item instanceof RawBencode) put(item.bytes)
    else if (Array.isArray(item)) {
      putText('l')
      const items = item as readonly Encodable[]
      let i = 0
      stack.push({ next: () => i < items.length && (putValue(items[i++]!), true) })
    } else if (typeof item === 'object' && item !== null) {
      putText('d')
      const entries = sortedEntries(item)
      let i = 0
      stack.push({
        next: () => {
          const entry = entries[i++]
          if (entry === undefined) return false
          putBytes(entry[0])
          putValue(entry[1])
          return true
        }
      })
    } else throw notEncodable(`a ${typeof item} has no bencoding`)
  }
  putValue(value)
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    if (top.next()) continue
    putText('e')
    stack.pop()
  }
  const out = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    out.set(chunk, offset)
    offset += chunk.length
  }
  return out
}
