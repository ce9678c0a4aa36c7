import { BencodeDictionary, compareBytes, toKey } from './bencode-dictionary.ts'
import { MetainfoError } from './errors.ts'

/** Bytes that are bencoded already and are embedded unchanged. */
export class RawBencode {
  readonly bytes: Uint8Array
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

/**
 * Values that can be encoded. Strings become UTF-8; properties of plain objects whose value is undefined are omitted.
 */
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

const notEncodable = (message: string): MetainfoError => new MetainfoError('E_BENCODE', 'not-encodable', message)

type DictionaryEntry = readonly [key: Uint8Array, value: Encodable]

function checkedKey(key: string | Uint8Array): Uint8Array {
  if (typeof key === 'string' && !key.isWellFormed()) throw notEncodable('a key contains a lone surrogate')
  return toKey(key)
}

function entriesOf(value: object): DictionaryEntry[] {
  if (value instanceof BencodeDictionary) return [...value.entries()]
  const entries: DictionaryEntry[] = []
  if (value instanceof Map) {
    const map: ReadonlyMap<string | Uint8Array, Encodable> = value
    map.forEach((item, key) => {
      entries.push([checkedKey(key), item])
    })
    return entries
  }
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, Encodable | undefined>)[key]
    if (item !== undefined) entries.push([checkedKey(key), item])
  }
  return entries
}

function sortedEntries(value: object): readonly DictionaryEntry[] {
  const entries = entriesOf(value).sort((a, b) => compareBytes(a[0], b[0]))
  if (entries.some(([key], i) => i > 0 && compareBytes(entries[i - 1]![0], key) === 0))
    throw notEncodable('a dictionary key occurs twice')
  return entries
}

/** Most outputs are an info dictionary of a few files, or a message. */
const FIRST_BYTES = 1024

class ByteBuilder {
  #bytes = new Uint8Array(FIRST_BYTES)
  #length = 0

  #makeRoom(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + count))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }

  put(bytes: Uint8Array): void {
    this.#makeRoom(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Text of ASCII characters: no array for each number and each length. */
  putAscii(text: string): void {
    this.#makeRoom(text.length)
    for (let i = 0; i < text.length; i++) this.#bytes[this.#length++] = text.charCodeAt(i)
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }
}

/**
 * Canonical bencoding (BEP 3): keys sorted by their bytes.
 * @throws MetainfoError `E_BENCODE`, reason `not-encodable`: unsafe or fractional numbers, lone surrogates, equal keys.
 */
export function encodeBencode(value: Encodable): Uint8Array {
  const output = new ByteBuilder()
  const putBytes = (bytes: Uint8Array): void => {
    output.putAscii(`${bytes.length}:`)
    output.put(bytes)
  }
  const putValue = (item: Encodable): void => {
    if (typeof item === 'string') {
      if (!item.isWellFormed()) throw notEncodable('a string contains a lone surrogate')
      putBytes(toKey(item))
    } else if (typeof item === 'number') {
      if (!Number.isSafeInteger(item)) throw notEncodable(`${item} is not a safe integer`)
      output.putAscii(`i${item}e`) // -0 prints as 0
    } else if (typeof item === 'bigint') output.putAscii(`i${item}e`)
    else if (item instanceof Uint8Array) putBytes(item)
    else if (item instanceof RawBencode) output.put(item.bytes)
    else if (Array.isArray(item)) {
      output.putAscii('l')
      for (const one of item as readonly Encodable[]) putValue(one)
      output.putAscii('e')
    } else if (typeof item === 'object' && item !== null) {
      output.putAscii('d')
      for (const [key, one] of sortedEntries(item)) {
        putBytes(key)
        putValue(one)
      }
      output.putAscii('e')
    } else throw notEncodable(`a ${typeof item} has no bencoding`)
  }
  putValue(value)
  return output.take()
}
