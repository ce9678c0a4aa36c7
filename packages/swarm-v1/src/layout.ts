import { BencodeDictionary, type BencodeValue, decodeBencode, encodeBencode, RawBencode, sha1 } from '@svc/metainfo'
import { SwarmV1Error } from './errors.ts'

/** A file of a BitTorrent v1 torrent, and its position in the stream of pieces. */
export interface V1File {
  /** Path below the torrent's name, segments separated by `/`; for a torrent of a single file, the name itself. */
  readonly path: string
  readonly sizeBytes: number
  /** Where the file begins within the torrent. */
  readonly offset: number
  /** Padding between files (BEP 47): zeros that are neither stored nor requested from the storage. */
  readonly pad: boolean
}

/** A BitTorrent v1 torrent (BEP 3), validated. */
export interface V1Layout {
  readonly infohash: string
  readonly name: string
  readonly pieceLength: number
  readonly pieceCount: number
  readonly sizeBytes: number
  readonly files: readonly V1File[]
  /** BEP 27: no DHT and no peer exchange. */
  readonly isPrivate: boolean
  /** The info dictionary exactly as it was hashed. */
  readonly info: Uint8Array
}

export const MAX_METADATA_BYTES = 10_000_000
const MAX_FILES = 10_000
const MAX_PIECES = 2_000_000
const MIN_PIECE_LENGTH = 1 << 14
export const MAX_PIECE_LENGTH = 1 << 26
const MAX_SEGMENT_BYTES = 255
const MAX_PATH_DEPTH = 32

const refuse = (message: string, cause?: unknown): SwarmV1Error =>
  new SwarmV1Error('E_SWARM_V1', 'metadata', `the torrent's metadata is refused: ${message}`, { cause })

/**
 * Parses an info dictionary, or a torrent file that contains one, and checks it against the infohash. Unsafe names are
 * refused rather than repaired.
 * @throws SwarmV1Error `E_SWARM_V1`, reason `metadata`.
 */
export function parseV1Torrent(bytes: Uint8Array, infohash: string): V1Layout {
  const root = decode(bytes)
  const info = root.has('pieces') ? bytes : root.span('info')
  if (info === undefined) throw refuse('it has no info dictionary')
  if (Buffer.from(sha1(info)).toString('hex') !== infohash) throw refuse('it does not hash to the infohash')
  const dictionary = root.has('pieces') ? root : root.get('info')
  if (!(dictionary instanceof BencodeDictionary)) throw refuse('info is not a dictionary')

  const name = segment(dictionary.get('name'), 'name')
  const pieceLength = integer(dictionary.get('piece length'), 'piece length')
  if (pieceLength < MIN_PIECE_LENGTH || pieceLength > MAX_PIECE_LENGTH) {
    throw refuse(`a piece length of ${pieceLength} bytes is not between 16 KiB and 64 MiB`)
  }
  const files = dictionary.has('files') ? readFiles(dictionary.get('files')) : [single(dictionary, name)]
  const last = files.at(-1)!
  const sizeBytes = last.offset + last.sizeBytes
  if (sizeBytes === 0) throw refuse('it has no bytes')

  const pieces = dictionary.get('pieces')
  const pieceCount = Math.ceil(sizeBytes / pieceLength)
  if (pieceCount > MAX_PIECES) throw refuse(`${pieceCount} pieces are too many; the limit is ${MAX_PIECES}`)
  if (!(pieces instanceof Uint8Array) || pieces.length !== 20 * pieceCount) {
    throw refuse(`it needs ${pieceCount} piece hashes of 20 bytes`)
  }
  const isPrivate = dictionary.get('private') === 1
  return { infohash, name, pieceLength, pieceCount, sizeBytes, files, isPrivate, info }
}

/** A torrent file with this info dictionary, for clients that do not accept a bare one. */
export function torrentBytes(info: Uint8Array, trackers: readonly string[]): Uint8Array {
  return encodeBencode({
    'announce-list': trackers.length > 0 ? trackers.map((url) => [url]) : undefined,
    info: new RawBencode(info)
  })
}

function decode(bytes: Uint8Array): BencodeDictionary {
  try {
    const value = decodeBencode(bytes, { maxBytes: MAX_METADATA_BYTES, maxDepth: 16 })
    if (value instanceof BencodeDictionary) return value
  } catch (cause) {
    throw refuse('it is not canonical bencoding', cause)
  }
  throw refuse('it is not a dictionary')
}

function single(dictionary: BencodeDictionary, name: string): V1File {
  return { path: name, sizeBytes: integer(dictionary.get('length'), 'length'), offset: 0, pad: false }
}

function readFiles(value: BencodeValue | undefined): V1File[] {
  if (!Array.isArray(value) || value.length === 0) throw refuse('files is not a list')
  if (value.length > MAX_FILES) throw refuse(`${value.length} files are too many; the limit is ${MAX_FILES}`)
  const files: V1File[] = []
  const names = new Set<string>()
  const folders = new Set<string>()
  let offset = 0
  for (const entry of value as readonly BencodeValue[]) {
    if (!(entry instanceof BencodeDictionary)) throw refuse('a file is not a dictionary')
    const sizeBytes = integer(entry.get('length'), 'length')
    const attributes = entry.get('attr')
    const pad = attributes instanceof Uint8Array && attributes.includes(0x70)
    if (attributes instanceof Uint8Array && attributes.includes(0x6c)) throw refuse('it contains a symbolic link')
    const segments = segmentsOf(entry.get('path'))
    const path = segments.join('/')
    if (!pad) {
      const folded = path.normalize('NFC')
      if (names.has(folded)) throw refuse(`${JSON.stringify(path)} occurs twice`)
      names.add(folded)
      for (let i = 1; i < segments.length; i++) folders.add(segments.slice(0, i).join('/').normalize('NFC'))
    }
    files.push({ path, sizeBytes, offset, pad })
    offset += sizeBytes
    if (!Number.isSafeInteger(offset)) throw refuse('it is too large')
  }
  for (const name of names) if (folders.has(name)) throw refuse(`${JSON.stringify(name)} is both a file and a folder`)
  return files
}

function segmentsOf(parts: BencodeValue | undefined): string[] {
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > MAX_PATH_DEPTH)
    throw refuse('a path is not a list of names')
  return (parts as readonly BencodeValue[]).map((part) => segment(part, 'path'))
}

function integer(value: BencodeValue | undefined, key: string): number {
  if (typeof value === 'number' && value >= 0) return value
  throw refuse(`${key} is not an integer of zero or more`)
}

function segment(value: BencodeValue | undefined, key: string): string {
  if (!(value instanceof Uint8Array) || value.length === 0 || value.length > MAX_SEGMENT_BYTES) {
    throw refuse(`a ${key} is not 1 to ${MAX_SEGMENT_BYTES} bytes`)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
  } catch {
    throw refuse(`a ${key} is not UTF-8`)
  }
  if (text === '.' || text === '..' || /[/\\\u0000-\u001f\u007f]/.test(text))
    throw refuse(`${JSON.stringify(text)} is not a safe name`)
  return text
}
