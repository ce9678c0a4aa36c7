import { BencodeDictionary, type BencodeValue, decodeBencode, encodeBencode } from './bencode.ts'
import { toHex } from './infohash.ts'
import { HASH_BYTES, pieceCount, verifyPieceLayer } from './merkle.ts'
import { METAINFO_BOUNDS, metainfoError, type TorrentFile, type TorrentInfo } from './torrent-info.ts'

/** Piece layers, keyed by the pieces root in lower-case hex. Identical files share one. */
export type PieceLayers = ReadonlyMap<string, Uint8Array>

/** The layers of a torrent, checked. */
export interface CheckedPieceLayers {
  /** Each verified against its root. */
  readonly layers: PieceLayers
  /** Roots (hex) of files larger than a piece for which there is no layer. */
  readonly missing: readonly string[]
}

/** The files that need a piece layer, by root: those larger than one piece (BEP 52). */
export function filesWithLayers(info: Pick<TorrentInfo, 'files' | 'pieceLength'>): ReadonlyMap<string, TorrentFile> {
  const files = new Map<string, TorrentFile>()
  for (const file of info.files) {
    if (file.piecesRoot === undefined || file.length <= info.pieceLength) continue
    const root = toHex(file.piecesRoot)
    const twin = files.get(root)
    if (twin !== undefined && twin.length !== file.length)
      throw metainfoError('pieces-root', 'files of different lengths have the same pieces root', { path: file.path })
    files.set(root, file)
  }
  return files
}

/**
 * Checks the decoded value of `piece layers` against the files of a torrent: raw 32-byte keys, each belonging to a file
 * larger than a piece, each layer of the right length and folding to its root. Absent layers are reported, not refused.
 * @throws MetainfoError `E_METAINFO`: `piece-layers`, `piece-layer-key`, `piece-layer-unknown`, `piece-layer-length`,
 * `piece-layer-root`.
 */
export function checkPieceLayers(
  value: BencodeValue,
  info: Pick<TorrentInfo, 'files' | 'pieceLength'>
): CheckedPieceLayers {
  if (!(value instanceof BencodeDictionary)) throw metainfoError('piece-layers', '"piece layers" is not a dictionary')
  const files = filesWithLayers(info)
  const layers = new Map<string, Uint8Array>()
  for (const [key, layer] of value.entries()) {
    if (key.length !== HASH_BYTES)
      throw metainfoError('piece-layer-key', 'a key of "piece layers" is not 32 bytes long')
    const root = toHex(key)
    const file = files.get(root)
    if (!(layer instanceof Uint8Array)) throw metainfoError('piece-layers', 'a piece layer is not a string', { root })
    if (file === undefined)
      throw metainfoError('piece-layer-unknown', 'a piece layer does not belong to any file', { root })
    requireLayerOf(file, layer, info.pieceLength, { root })
    layers.set(root, layer)
  }
  return { layers, missing: [...files.keys()].filter((root) => !layers.has(root)) }
}

/** @throws MetainfoError `E_METAINFO`: `piece-layer-length`, `piece-layer-root` */
function requireLayerOf(file: TorrentFile, layer: Uint8Array, pieceLength: number, details: object): void {
  if (layer.length !== pieceCount(file.length, pieceLength) * HASH_BYTES)
    throw metainfoError('piece-layer-length', 'a piece layer does not have 32 bytes per piece', { ...details })
  if (!verifyPieceLayer(layer, file.piecesRoot!, file.length, pieceLength))
    throw metainfoError('piece-layer-root', 'a piece layer does not fold to its pieces root', { ...details })
}

/**
 * Parses `piece layers`, and checks each layer: it belongs to a file larger than a piece, and folds to its root. Absent
 * ones are reported, not refused. @throws MetainfoError `E_BENCODE`, `E_METAINFO`
 */
export function parsePieceLayers(
  bytes: Uint8Array,
  info: Pick<TorrentInfo, 'files' | 'pieceLength'>
): CheckedPieceLayers {
  return checkPieceLayers(
    decodeBencode(bytes, { maxBytes: METAINFO_BOUNDS.pieces * HASH_BYTES + METAINFO_BOUNDS.torrentBytes }),
    info
  )
}

/**
 * The bencoded dictionary root → layer with exactly the entries that `info` needs: a pure function.
 * @throws MetainfoError `E_METAINFO`: `piece-layer-missing`, `piece-layer-length`, `piece-layer-root`.
 */
export function encodePieceLayers(layers: PieceLayers, info: Pick<TorrentInfo, 'files' | 'pieceLength'>): Uint8Array {
  const entries = new Map<Uint8Array, Uint8Array>()
  for (const [root, file] of filesWithLayers(info)) {
    const layer = layers.get(root)
    const details = { path: file.path, root }
    if (layer === undefined)
      throw metainfoError('piece-layer-missing', 'a file larger than a piece has no piece layer', details)
    requireLayerOf(file, layer, info.pieceLength, details)
    entries.set(file.piecesRoot!, layer)
  }
  return encodeBencode(entries)
}
