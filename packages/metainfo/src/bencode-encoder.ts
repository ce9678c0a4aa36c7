import { BencodeDictionary, compareBytes, toKey } from './bencode-dictionary.ts'
import { MetainfoError } from './errors.ts'

const encoder = new TextEncoder()

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
 * @throws MetainfoError `E_BENCODE`, reason `not-encodable`: unsafe or fractional numbers, lone surrogates, equal keys.
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
  const stack: { readonly next: () => boolean }[] = []
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
