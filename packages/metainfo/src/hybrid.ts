import { BencodeDictionary, type BencodeValue } from './bencode.ts'
import { metainfoError, type TorrentFile } from './torrent-info.ts'

const LETTER_P = 0x70
const SHA1_BYTES = 20

const isV1Length = (value: BencodeValue | undefined): value is number => typeof value === 'number' && value >= 0

function pathOf(value: BencodeValue | undefined): string | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined
  const segments: string[] = []
  for (const segment of value as readonly BencodeValue[]) {
    if (!(segment instanceof Uint8Array)) return undefined
    segments.push(new TextDecoder('utf-8', { ignoreBOM: true }).decode(segment))
  }
  return segments.join('/')
}

/**
 * Checks that the v1 half of an info dictionary describes the same files as its tree, in the same order, each starting
 * at a piece boundary (BEP 52, upgrade path). False when there is no v1 half.
 * @throws MetainfoError `E_METAINFO`: `v1-mismatch`, `v1-alignment`, `v1-pieces`.
 */
export function checkHybrid(
  info: BencodeDictionary,
  name: string,
  pieceLength: number,
  files: readonly TorrentFile[]
): boolean {
  if (!info.has('pieces') && !info.has('files') && !info.has('length')) return false
  const pieces = info.get('pieces')
  if (!(pieces instanceof Uint8Array)) throw metainfoError('v1-pieces', '"pieces" is missing or not a string')
  const totalBytes = info.has('length') ? singleFileBytes(info, name, files) : listedBytes(info, pieceLength, files)
  if (pieces.length !== Math.ceil(totalBytes / pieceLength) * SHA1_BYTES)
    throw metainfoError('v1-pieces', '"pieces" does not have 20 bytes per piece')
  return true
}

const mismatch = (message: string): Error => metainfoError('v1-mismatch', `the v1 and v2 halves disagree: ${message}`)

function singleFileBytes(info: BencodeDictionary, name: string, files: readonly TorrentFile[]): number {
  const length = info.get('length')
  if (info.has('files')) throw mismatch('both "length" and "files"')
  if (!isV1Length(length) || files.length !== 1 || files[0]!.path !== name || files[0]!.length !== length)
    throw mismatch('the single file')
  return length
}

function listedBytes(info: BencodeDictionary, pieceLength: number, files: readonly TorrentFile[]): number {
  const list = info.get('files')
  if (!Array.isArray(list)) throw mismatch('"files" is not a list')
  let totalBytes = 0
  let next = 0
  for (const entry of list as readonly BencodeValue[]) {
    if (!(entry instanceof BencodeDictionary)) throw mismatch('an entry of "files" is not a dictionary')
    const length = entry.get('length')
    if (!isV1Length(length)) throw mismatch('an entry of "files" has no length')
    const attributes = entry.get('attr')
    if (attributes instanceof Uint8Array && attributes.includes(LETTER_P)) {
      if (length >= pieceLength) throw metainfoError('v1-alignment', 'a pad file must be shorter than a piece')
    } else {
      const file = files[next++]
      if (file === undefined || file.length !== length || file.path !== pathOf(entry.get('path')))
        throw mismatch(`file number ${next}`)
      if (length > 0 && totalBytes % pieceLength !== 0) {
        throw metainfoError('v1-alignment', 'a file does not start at a piece boundary')
      }
    }
    totalBytes += length
    if (!Number.isSafeInteger(totalBytes)) throw mismatch('the total length')
  }
  if (next !== files.length) throw mismatch('the number of files')
  return totalBytes
}
