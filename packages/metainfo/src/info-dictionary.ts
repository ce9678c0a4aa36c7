import { BencodeDictionary, type BencodeValue, decodeBencode, type Encodable, encodeBencode } from './bencode.ts'
import { toKey } from './bencode-dictionary.ts'
import type { MetainfoError } from './errors.ts'
import { checkHybrid } from './hybrid.ts'
import { isPieceLength, pieceCount } from './merkle.ts'
import { sha1, sha256 } from './sha256.ts'
import {
  METAINFO_BOUNDS,
  type MetainfoReason,
  metainfoError,
  type TorrentFile,
  type TorrentInfo
} from './torrent-info.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const UNSAFE = /[\u0000-\u001f\u007f/\\]/
/** Most segments: they need no closer look. */
const PLAIN_SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}$/

/**
 * A file or folder name that is safe as it is; unsafe names are refused, never repaired. @throws MetainfoError
 * `E_METAINFO`.
 */
function decodeSegment(bytes: Uint8Array, reason: 'name' | 'path-segment'): string {
  const bad = (why: string): MetainfoError =>
    metainfoError(reason, `unsafe ${reason === 'name' ? 'name' : 'path segment'}: ${why}`)
  if (bytes.length === 0) throw bad('empty')
  if (bytes.length > METAINFO_BOUNDS.segmentBytes) throw bad(`more than ${METAINFO_BOUNDS.segmentBytes} bytes`)
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw bad('not UTF-8')
  }
  if (text === '.' || text === '..') throw bad(`"${text}"`)
  if (UNSAFE.test(text)) throw bad('a separator, a backslash or a control character')
  return text
}

const isLength = (value: BencodeValue | undefined): value is number =>
  typeof value === 'number' && value >= 0 && value <= METAINFO_BOUNDS.lengthBytes

function parseFile(entry: BencodeValue, path: string): { length: number; piecesRoot: Uint8Array | undefined } {
  const bad = (reason: MetainfoReason, message: string): MetainfoError => metainfoError(reason, message, { path })
  if (!(entry instanceof BencodeDictionary)) throw bad('file-entry', 'the entry of a file is not a dictionary')
  const attributes = entry.get('attr')
  if (attributes !== undefined && !(attributes instanceof Uint8Array)) throw bad('file-entry', '"attr" is not a string')
  if (attributes?.includes(0x70)) throw bad('pad-file', 'a file tree must not contain pad files')
  if (attributes?.includes(0x6c) || entry.has('symlink path'))
    throw bad('symlink', 'a file tree must not contain symbolic links')
  const length = entry.get('length')
  if (!isLength(length)) throw bad('file-length', `the length of a file must be 0 to ${METAINFO_BOUNDS.lengthBytes}`)
  const root = entry.get('pieces root')
  if (length === 0) {
    if (root !== undefined) throw bad('pieces-root', 'an empty file must not have a pieces root')
    return { length, piecesRoot: undefined }
  }
  if (!(root instanceof Uint8Array) || root.length !== 32 || root.every((byte) => byte === 0))
    throw bad('pieces-root', 'a file with content must have a pieces root of 32 bytes that are not all zero')
  return { length, piecesRoot: root }
}

function parseTree(tree: BencodeValue | undefined, pieceLength: number): TorrentFile[] {
  const files: TorrentFile[] = []
  let firstPiece = 0
  let totalBytes = 0
  const addFile = (entry: BencodeValue, path: string): void => {
    const { length, piecesRoot } = parseFile(entry, path)
    const count = pieceCount(length, pieceLength)
    files.push({ path, length, piecesRoot, firstPiece, pieceCount: count })
    firstPiece += count
    totalBytes += length
    if (firstPiece > METAINFO_BOUNDS.pieces)
      throw metainfoError('too-many-pieces', `more than ${METAINFO_BOUNDS.pieces} pieces`)
    if (totalBytes > METAINFO_BOUNDS.lengthBytes)
      throw metainfoError('total-length', 'the files are too large together')
  }
  const walk = (folder: BencodeValue | undefined, prefix: string, depth: number): void => {
    if (!(folder instanceof BencodeDictionary))
      throw metainfoError(prefix === '' ? 'file-tree' : 'file-entry', 'a node of the file tree is not a dictionary')
    if (folder.size === 0) throw metainfoError('file-tree', 'a folder of the file tree is empty')
    if (depth > METAINFO_BOUNDS.pathDepth)
      throw metainfoError('path-depth', `a path has more than ${METAINFO_BOUNDS.pathDepth} segments`)
    const seen = new Set<string>()
    for (const [key, node] of folder.entries()) {
      const segment = decodeSegment(key, 'path-segment')
      const folded = segment.normalize('NFC')
      if (seen.has(folded))
        throw metainfoError('path-duplicate', 'two names in one folder are the same after Unicode normalization')
      seen.add(folded)
      const path = prefix === '' ? segment : `${prefix}/${segment}`
      if (node instanceof BencodeDictionary && node.has('')) {
        if (node.size !== 1) throw metainfoError('file-entry', 'a node is both a file and a folder', { path })
        addFile(node.get('')!, path)
      } else walk(node, path, depth + 1)
    }
  }
  walk(tree, '', 1)
  return files
}

/**
 * Parses the info dictionary of a v2 or hybrid torrent strictly (BEP 52): everything is checked, nothing is repaired.
 * Returned byte arrays are views into `infoBytes`.
 * @throws MetainfoError `E_METAINFO` with a {@link MetainfoReason}, `E_BENCODE` for a malformed encoding.
 */
export function parseInfo(infoBytes: Uint8Array): TorrentInfo {
  if (infoBytes.length > METAINFO_BOUNDS.infoBytes)
    throw metainfoError('too-large', `an info dictionary must have at most ${METAINFO_BOUNDS.infoBytes} bytes`)
  const info = decodeBencode(infoBytes)
  if (!(info instanceof BencodeDictionary)) throw metainfoError('not-a-dictionary', 'info is not a dictionary')
  if (!info.has('meta version') && !info.has('file tree'))
    throw metainfoError('v1-only', 'this torrent is BitTorrent v1 only: a v2 or hybrid torrent is needed')
  if (info.get('meta version') !== 2) throw metainfoError('meta-version', '"meta version" is not 2')
  const nameBytes = info.get('name')
  if (!(nameBytes instanceof Uint8Array)) throw metainfoError('name', 'the torrent has no name')
  const name = decodeSegment(nameBytes, 'name')
  const pieceLength = info.get('piece length')
  if (
    typeof pieceLength !== 'number' ||
    !isPieceLength(pieceLength) ||
    pieceLength > METAINFO_BOUNDS.pieceLengthBytes
  ) {
    throw metainfoError('piece-length', 'the piece length must be a power of two from 16 KiB to 512 MiB')
  }
  const files = parseTree(info.get('file tree'), pieceLength)
  const isPrivate = info.get('private')
  if (isPrivate !== undefined && typeof isPrivate !== 'number')
    throw metainfoError('private', '"private" is not an integer')
  const hybrid = checkHybrid(info, name, pieceLength, files)
  const last = files.at(-1)!
  return {
    infoBytes,
    infohash: sha256(infoBytes),
    infohashV1: hybrid ? sha1(infoBytes) : undefined,
    name,
    pieceLength,
    files,
    pieceCount: last.firstPiece + last.pieceCount,
    totalBytes: files.reduce((sum, file) => sum + file.length, 0),
    singleFile: files.length === 1 && files[0]!.path === name,
    private: isPrivate === 1
  }
}

/** Input of {@link buildInfo}. */
export interface InfoSpec {
  readonly name: string
  /** Power of two, 16 KiB to 512 MiB. */
  readonly pieceLength: number
  /** In any order. `piecesRoot` is required for files with content, and only for them. */
  readonly files: readonly {
    readonly path: string
    readonly length: number
    readonly piecesRoot?: Uint8Array | undefined
  }[]
  /** BEP 27: peers come from the torrent's trackers only. */
  readonly private?: boolean
}

type TreeNode = Map<string, Encodable>

/**
 * Builds a v2-only info dictionary: a pure function; the order of files in the spec does not change the bytes. A tree
 * of one file at the root with the torrent's own name is a single-file torrent.
 * @throws MetainfoError `E_METAINFO` as {@link parseInfo} does; `file-tree` for a path that is both a file and a
 *   folder.
 */
export function buildInfo(spec: InfoSpec): TorrentInfo {
  const tree: TreeNode = new Map()
  for (const { path, length, piecesRoot } of spec.files) {
    const segments = path.split('/')
    if (segments.length > METAINFO_BOUNDS.pathDepth)
      throw metainfoError('path-depth', `a path has more than ${METAINFO_BOUNDS.pathDepth} segments`, { path })
    let folder = tree
    for (const [i, segment] of segments.entries()) {
      if (!PLAIN_SEGMENT.test(segment)) {
        if (!segment.isWellFormed()) throw metainfoError('path-segment', 'unsafe path segment: not UTF-8', { path })
        decodeSegment(toKey(segment), 'path-segment')
      }
      const existing = folder.get(segment) as TreeNode | undefined
      const isFile = i === segments.length - 1
      if (existing !== undefined && (isFile || existing.has('')))
        throw metainfoError('file-tree', 'a path occurs twice, or is both a file and a folder', { path })
      const node: TreeNode = existing ?? new Map()
      folder.set(segment, node)
      folder = node
    }
    if (!isLength(length) || !Number.isInteger(length))
      throw metainfoError('file-length', `the length of a file must be 0 to ${METAINFO_BOUNDS.lengthBytes}`, { path })
    folder.set('', piecesRoot === undefined ? { length } : { length, 'pieces root': piecesRoot })
  }
  if (!Number.isSafeInteger(spec.pieceLength))
    throw metainfoError('piece-length', 'the piece length must be a power of two from 16 KiB to 512 MiB')
  if (!spec.name.isWellFormed()) throw metainfoError('name', 'unsafe name: not UTF-8')
  return parseInfo(
    encodeBencode({
      'file tree': tree,
      'meta version': 2,
      name: spec.name,
      'piece length': spec.pieceLength,
      private: spec.private === true ? 1 : undefined
    })
  )
}
