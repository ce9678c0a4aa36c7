import { BencodeDictionary, type BencodeValue, compareBytes } from './bencode-dictionary.ts'
import { MetainfoError } from './errors.ts'

export { BencodeDictionary, type BencodeList, type BencodeValue } from './bencode-dictionary.ts'
export { type Encodable, encodeBencode, RawBencode } from './bencode-encoder.ts'

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

/** Limits of decoding; the defaults suit `.torrent` files. */
export interface DecodeOptions {
  /** Default 10,000,000. */
  readonly maxBytes?: number
  /** Nested containers, which are read by recursion; default 100. */
  readonly maxDepth?: number
  /** Values and keys together; default 400,000. */
  readonly maxTokens?: number
  /**
   * Accept newlines (CR, LF) after the root value: some published `.torrent` files end with one, no message on the wire
   * does. Default false.
   */
  readonly allowTrailing?: boolean
  /**
   * Accept dictionaries whose keys are in any order, as some trackers and peers send them (chihaya in every other answer).
   * Keys still have to be unique, and are sorted once read. Not for what is hashed. Default false.
   */
  readonly allowUnsorted?: boolean
}

/** Each costs more than many bytes of a string do. A file of a torrent takes ten or so. */
const MAX_TOKENS = 400_000

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

const fail = (reason: BencodeReason, offset: number, message: string): MetainfoError =>
  new MetainfoError('E_BENCODE', reason, `bencoded data, byte ${offset}: ${message}`, { details: { offset } })

const twice = (offset: number): MetainfoError => fail('key-duplicate', offset, 'a dictionary key occurs twice')

/** Reads one value at a time; nested ones by recursion, which `maxDepth` bounds. */
class Decoder {
  readonly #bytes: Uint8Array
  readonly #maxDepth: number
  readonly #maxTokens: number
  readonly #allowUnsorted: boolean
  #at = 0
  #tokens = 0

  constructor(bytes: Uint8Array, options: DecodeOptions) {
    const maxBytes = options.maxBytes ?? 10_000_000
    if (bytes.length > maxBytes)
      throw fail('too-large', maxBytes, `${bytes.length} bytes, and the limit is ${maxBytes}`)
    this.#bytes = bytes
    this.#maxDepth = options.maxDepth ?? 100
    this.#maxTokens = options.maxTokens ?? MAX_TOKENS
    this.#allowUnsorted = options.allowUnsorted ?? false
  }

  get at(): number {
    return this.#at
  }

  value(depth = 0): BencodeValue {
    const byte = this.#begin()
    if (byte === LETTER_D) return this.#dictionary(depth)
    if (byte === LETTER_L) return this.#list(depth)
    if (byte === LETTER_I) return this.#integer()
    if (byte >= DIGIT_0 && byte <= DIGIT_9) return this.#string()
    throw fail('unexpected-byte', this.#at, 'expected an integer, a string, a list or a dictionary')
  }

  /** Counts a value or a key, and returns its first byte. */
  #begin(): number {
    const byte = this.#peek()
    if (++this.#tokens > this.#maxTokens) throw fail('tokens', this.#at, `more than ${this.#maxTokens} values`)
    return byte
  }

  #peek(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw fail('truncated', this.#at, 'the data ends within a value')
    return byte
  }

  #open(depth: number): void {
    if (depth >= this.#maxDepth) throw fail('depth', this.#at, `nested deeper than ${this.#maxDepth}`)
    this.#at++
  }

  #list(depth: number): BencodeValue[] {
    this.#open(depth)
    const items: BencodeValue[] = []
    while (this.#peek() !== LETTER_E) items.push(this.value(depth + 1))
    this.#at++
    return items
  }

  #dictionary(depth: number): BencodeDictionary {
    this.#open(depth)
    const dictionary = new BencodeDictionary(this.#bytes)
    let last: Uint8Array | undefined
    let isUnsorted = false
    while (this.#peek() !== LETTER_E) {
      const start = this.#at
      const key = this.#key()
      const order = last === undefined ? -1 : compareBytes(last, key)
      if (order === 0) throw twice(start)
      if (order > 0 && !this.#allowUnsorted)
        throw fail('key-order', start, 'dictionary keys must be sorted by their bytes')
      if (order > 0) isUnsorted = true
      last = key
      if (this.#peek() === LETTER_E) throw fail('missing-value', this.#at, 'a dictionary key has no value')
      const valueStart = this.#at
      dictionary.append(key, this.value(depth + 1), valueStart, this.#at)
    }
    if (isUnsorted && !dictionary.sort()) throw twice(this.#at)
    this.#at++
    return dictionary
  }

  #key(): Uint8Array {
    const byte = this.#begin()
    if (byte < DIGIT_0 || byte > DIGIT_9)
      throw fail('key-not-string', this.#at, 'a dictionary key must be a byte string')
    return this.#string()
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
    if (digits > 20) throw fail('integer-range', start, 'an integer must have at most 64 bits')
    const end = this.#bytes[at]
    if (end === undefined) throw fail('truncated', at, 'the data ends within an integer')
    if (end !== LETTER_E || digits === 0) throw fail('integer-format', start, 'an integer must be i<digits>e')
    if (this.#bytes[first] === DIGIT_0 && (digits > 1 || negative))
      throw fail('integer-format', start, 'an integer must not have leading zeros, or be negative zero')
    this.#at = at + 1
    if (digits > 15) return this.#largeInteger(first, at, negative)
    let value = 0
    for (let i = first; i < at; i++) value = value * 10 + (this.#bytes[i]! - DIGIT_0)
    return negative ? -value : value
  }

  #largeInteger(first: number, at: number, negative: boolean): number | bigint {
    let big = 0n
    for (let i = first; i < at; i++) big = big * 10n + BigInt(this.#bytes[i]! - DIGIT_0)
    if (negative) big = -big
    if (big < MIN_INT64 || big > MAX_UINT64) {
      const start = first - (negative ? 2 : 1)
      throw fail('integer-range', start, 'an integer must have at most 64 bits')
    }
    const value = Number(big)
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
    if (colon !== COLON) throw fail('string-length', start, 'a string must be <length>:<bytes>')
    if (this.#bytes[start] === DIGIT_0 && at - start > 1)
      throw fail('string-length', start, 'the length of a string must not have leading zeros')
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
 * Decodes exactly one value in canonical form (BEP 3): keys sorted and unique, no leading zeros, nothing after it, but
 * for what the options allow.
 * @throws MetainfoError `E_BENCODE` with a {@link BencodeReason} and `details.offset`.
 */
export function decodeBencode(bytes: Uint8Array, options: DecodeOptions = {}): BencodeValue {
  const decoder = new Decoder(bytes, options)
  const value = decoder.value()
  let end = decoder.at
  if (options.allowTrailing === true) while (bytes[end] === 0x0a || bytes[end] === 0x0d) end++
  if (end < bytes.length) throw fail('trailing', end, 'there is data after the value')
  return value
}

/**
 * Decodes the value at the start of `bytes` and returns where it ends: messages of the extension protocol carry raw
 * bytes after their dictionary (BEP 9). @throws MetainfoError `E_BENCODE`.
 */
export function decodeBencodePrefix(
  bytes: Uint8Array,
  options: Omit<DecodeOptions, 'allowTrailing'> = {}
): { readonly value: BencodeValue; readonly endOffset: number } {
  const decoder = new Decoder(bytes, options)
  const value = decoder.value()
  return { value, endOffset: decoder.at }
}
