import { MetainfoError } from './errors.ts'
import type { TorrentInfo } from './torrent-info.ts'

/** Larger pieces than this are refused: one piece must fit a receive slot. */
const MAX_PIECE_LENGTH_BYTES = 64 * 1024 * 1024

/** A file of a torrent. Its path is for people and webseeds; storage addresses files by index. */
export interface LayoutFile {
  readonly index: number
  /** Relative, `/`-separated; already checked by the metainfo parser. */
  readonly path: string
  readonly lengthBytes: number
  /** 32 bytes; undefined for an empty file. */
  readonly piecesRoot: Uint8Array | undefined
  /** Files start at piece boundaries (BEP 52); an empty file has `pieceCount` 0. */
  readonly firstPiece: number
  readonly pieceCount: number
}

/** Where the bytes of a piece lie. `lengthBytes` excludes padding. */
interface PieceSpan {
  readonly file: LayoutFile
  readonly offset: number
  readonly lengthBytes: number
}

/** Maps pieces to files and back, for one v2 torrent. Immutable. */
export class TorrentLayout {
  readonly name: string
  readonly pieceLengthBytes: number
  /** The torrent is one file at the root with the torrent's own name (BEP 19 addresses it without a folder). */
  readonly singleFile: boolean
  readonly files: readonly LayoutFile[]
  readonly pieceCount: number
  /** Sum of the files, without padding. */
  readonly totalBytes: number
  /** Files that have pieces, by first piece. */
  readonly #withPieces: readonly LayoutFile[]

  /** @throws MetainfoError `E_METAINFO` `piece-length`: pieces too large for a receive slot. */
  constructor(info: TorrentInfo) {
    if (info.pieceLength > MAX_PIECE_LENGTH_BYTES) {
      const message = `pieces of ${info.pieceLength} bytes are not supported; the limit is ${MAX_PIECE_LENGTH_BYTES}`
      throw new MetainfoError('E_METAINFO', 'piece-length', message)
    }
    this.name = info.name
    this.pieceLengthBytes = info.pieceLength
    this.singleFile = info.singleFile
    this.files = info.files.map((file, index) => ({
      index,
      path: file.path,
      lengthBytes: file.length,
      piecesRoot: file.piecesRoot,
      firstPiece: file.firstPiece,
      pieceCount: file.pieceCount
    }))
    this.pieceCount = info.pieceCount
    this.totalBytes = info.totalBytes
    this.#withPieces = this.files.filter((file) => file.pieceCount > 0)
  }

  /** The file that a piece belongs to; `piece` is in bounds. */
  fileOf(piece: number): LayoutFile {
    let low = 0
    let high = this.#withPieces.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#withPieces[middle]!.firstPiece <= piece) low = middle
      else high = middle - 1
    }
    return this.#withPieces[low]!
  }

  span(piece: number): PieceSpan {
    const file = this.fileOf(piece)
    const offset = (piece - file.firstPiece) * this.pieceLengthBytes
    return { file, offset, lengthBytes: Math.min(this.pieceLengthBytes, file.lengthBytes - offset) }
  }

  /** Files by pieces root, as hash requests name them. Identical files share one entry. */
  byRoot(): ReadonlyMap<string, LayoutFile> {
    const roots = new Map<string, LayoutFile>()
    for (const file of this.#withPieces) roots.set(rootKey(file.piecesRoot!), file)
    return roots
  }
}

/** A pieces root (32 bytes) as a map key: one character per byte. */
export const rootKey = (root: Uint8Array): string => String.fromCharCode(...root)
