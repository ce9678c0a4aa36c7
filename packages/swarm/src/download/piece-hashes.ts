import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { blockCount, HASH_BYTES, heightOf, pieceLevel, toHex } from '@svc/metainfo'

/** The hash that a piece's leaves must fold to. */
export interface ExpectedHash {
  readonly hash: Uint8Array
  /** Levels between the leaves and that hash. */
  readonly levels: number
}

/**
 * Proven piece layers of one torrent, by root; files no larger than a piece need none.
 *
 * Invariant: the caller of `set` has verified the layer against its root.
 */
export class PieceHashes {
  readonly #layout: TorrentLayout
  readonly #layers = new Map<string, Uint8Array>()
  readonly #roots: readonly (string | undefined)[]

  constructor(layout: TorrentLayout) {
    this.#layout = layout
    this.#roots = layout.files.map((file) => (file.pieceCount > 1 ? toHex(file.piecesRoot!) : undefined))
  }

  /** Undefined when the file has no layer (one piece or none), or when it is not known yet. */
  layer(file: LayoutFile): Uint8Array | undefined {
    const root = this.#roots[file.index]
    return root === undefined ? undefined : this.#layers.get(root)
  }

  /** True when every piece of the file can be verified. */
  known(file: LayoutFile): boolean {
    return file.pieceCount <= 1 || this.layer(file) !== undefined
  }

  /** Stores a proven layer; returns the files whose pieces can be verified now. */
  set(rootHex: string, layer: Uint8Array): readonly LayoutFile[] {
    if (this.#layers.has(rootHex)) return []
    this.#layers.set(rootHex, layer)
    return this.#layout.files.filter((file) => this.#roots[file.index] === rootHex)
  }

  expected(piece: number): ExpectedHash | undefined {
    const file = this.#layout.fileOf(piece)
    if (file.pieceCount === 1) return { hash: file.piecesRoot!, levels: heightOf(blockCount(file.lengthBytes)) }
    const layer = this.layer(file)
    if (layer === undefined) return undefined
    const at = (piece - file.firstPiece) * HASH_BYTES
    return { hash: layer.subarray(at, at + HASH_BYTES), levels: pieceLevel(this.#layout.pieceLengthBytes) }
  }
}
