import { MetainfoError } from './errors.ts'

/** Limits on input from untrusted sources. */
export const METAINFO_BOUNDS = {
  /** A `.torrent` file. */
  torrentBytes: 10_000_000,
  /** An info dictionary. */
  infoBytes: 4 * 1024 * 1024,
  pieces: 2_000_000,
  pathDepth: 32,
  segmentBytes: 255,
  /** Of one file, and of all files together. */
  lengthBytes: 2 ** 48 - 1,
  /** 512 MiB: requests address a piece with 32 bits. */
  pieceLengthBytes: 2 ** 29
} as const

/** Why an info dictionary or a `.torrent` was refused (code `E_METAINFO`); bencoding defects are `E_BENCODE`. */
export type MetainfoReason =
  | 'too-large'
  | 'not-a-dictionary'
  | 'info-missing'
  | 'v1-only'
  | 'meta-version'
  | 'name'
  | 'piece-length'
  | 'file-tree'
  | 'file-entry'
  | 'file-length'
  | 'path-segment'
  | 'path-depth'
  | 'path-duplicate'
  | 'pad-file'
  | 'symlink'
  | 'pieces-root'
  | 'total-length'
  | 'too-many-pieces'
  | 'private'
  | 'v1-mismatch'
  | 'v1-alignment'
  | 'v1-pieces'
  | 'piece-layers'
  | 'piece-layer-key'
  | 'piece-layer-length'
  | 'piece-layer-root'
  | 'piece-layer-unknown'
  | 'piece-layer-missing'
  | 'hints'
  | 'infohash'

/** A file of a torrent, as listed in its info dictionary. */
export interface TorrentFile {
  /** Segments joined with `/`; no segment is empty, `.` or `..`, none holds a separator or a control character. */
  readonly path: string
  /** Bytes. */
  readonly length: number
  /** 32 bytes; undefined exactly for an empty file. */
  readonly piecesRoot: Uint8Array | undefined
  /** Index of its first piece within the torrent; for an empty file, that of the next file. */
  readonly firstPiece: number
  readonly pieceCount: number
}

/** A parsed info dictionary, v2 or hybrid. Byte arrays are views into `infoBytes`. */
export interface TorrentInfo {
  /** The info dictionary as received; the infohash is computed over it. */
  readonly infoBytes: Uint8Array
  /** SHA-256 of `infoBytes`, 32 bytes. */
  readonly infohash: Uint8Array
  /** SHA-1 of `infoBytes` for a hybrid torrent, else undefined. */
  readonly infohashV1: Uint8Array | undefined
  readonly name: string
  /** Bytes. */
  readonly pieceLength: number
  /** In the order of the file tree, which is the order of the pieces. */
  readonly files: readonly TorrentFile[]
  readonly pieceCount: number
  readonly totalBytes: number
  /** The tree is one file at the root with the torrent's own name: BEP 19 addresses it without a folder. */
  readonly singleFile: boolean
  readonly private: boolean
}

export const metainfoError = (
  reason: MetainfoReason,
  message: string,
  details?: Readonly<Record<string, unknown>>
): MetainfoError => new MetainfoError('E_METAINFO', reason, message, details === undefined ? {} : { details })
