/**
 * A decoded value. Byte strings are views into the input. Integers are numbers while they are safe integers, and
 * bigints beyond that, up to 64 bits (−2^63 … 2^64−1).
 */
export type BencodeValue = number | bigint | Uint8Array | BencodeList | BencodeDictionary
/** A decoded list. */
export type BencodeList = readonly BencodeValue[]

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
const MAX_SHORT = 32

/** UTF-8 of a key given as text. @internal */
export function toKey(key: string | Uint8Array): Uint8Array {
  if (typeof key !== 'string') return key
  if (key.length > MAX_SHORT) return encoder.encode(key)
  // keys of dictionaries are a few ASCII characters: an encoder costs ten times as much for them
  const bytes = new Uint8Array(key.length)
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code > 0x7f) return encoder.encode(key)
    bytes[i] = code
  }
  return bytes
}

// A hostile file can hold millions of empty dictionaries. Sharing one array makes refusing it 2 x faster (measured).
const NO_KEYS: Uint8Array[] = []
const NO_VALUES: BencodeValue[] = []
const NO_SPANS: number[] = []

/** A decoded dictionary: raw byte keys in sorted order, with the span that each value was read from. */
export class BencodeDictionary {
  readonly #source: Uint8Array
  #keys: Uint8Array[] = NO_KEYS
  #values: BencodeValue[] = NO_VALUES
  #spans: number[] = NO_SPANS

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

  /** The value's bytes exactly as received, e.g. the `info` dictionary for hashing (BEP 3, BEP 52). */
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

  /** Called by the decoder once, when keys came in another order. Returns false when one occurs twice. @internal */
  sort(): boolean {
    const order = this.#keys.map((_, index) => index)
    order.sort((a, b) => compareBytes(this.#keys[a]!, this.#keys[b]!))
    const spans = this.#spans
    this.#spans = order.flatMap((index) => [spans[2 * index]!, spans[2 * index + 1]!])
    this.#keys = order.map((index) => this.#keys[index]!)
    this.#values = order.map((index) => this.#values[index]!)
    return this.#keys.every((key, index) => index === 0 || compareBytes(this.#keys[index - 1]!, key) !== 0)
  }

  /** Called by the decoder, with keys in sorted order and without duplicates, unless {@link sort} follows. @internal */
  append(key: Uint8Array, value: BencodeValue, start: number, end: number): void {
    if (this.#keys === NO_KEYS) {
      this.#keys = []
      this.#values = []
      this.#spans = []
    }
    this.#keys.push(key)
    this.#values.push(value)
    this.#spans.push(start, end)
  }
}
