export {
  BencodeDictionary,
  type BencodeList,
  type BencodeReason,
  type BencodeValue,
  type DecodeOptions,
  decodeBencode,
  decodeBencodePrefix,
  type Encodable,
  encodeBencode,
  RawBencode
} from './bencode.ts'
export { MetainfoError, type MetainfoErrorCode } from './errors.ts'
export {
  defectOfHashRequest,
  type HashRequest,
  leavesForRequest,
  PieceTree,
  replyLength,
  type TreeShape,
  treeHeight,
  verifyReply
} from './hash-request.ts'
export { buildInfo, type InfoSpec, parseInfo } from './info-dictionary.ts'
export { formatInfohash, parseInfohash, toHex, truncateInfohash, tryFromHex, tryParseInfohash } from './infohash.ts'
export { type LayoutFile, rootKey, TorrentLayout } from './layout.ts'
export { leafHasherUrl } from './leaf-hasher-url.ts'
export {
  formatMagnet,
  type Magnet,
  type MagnetReason,
  type MagnetTopics,
  parseMagnet,
  parseMagnetTopics
} from './magnet.ts'
export {
  ancestorLayer,
  BLOCK_BYTES,
  blockCount,
  equalBytes,
  foldLayer,
  HASH_BYTES,
  heightOf,
  isPieceLength,
  leafLayer,
  MAX_REQUEST_HASHES,
  type MerkleReason,
  pieceCount,
  pieceHash,
  pieceLayer,
  pieceLayerOfSubtrees,
  pieceLevel,
  piecesRoot,
  rootOfPieceLayer,
  rootOfSubtrees,
  SUBTREE_LEVEL,
  verifyPieceLayer
} from './merkle.ts'
export { PieceLayerAssembler, type ReplyVerdict } from './piece-layer-assembler.ts'
export {
  type CheckedPieceLayers,
  encodePieceLayers,
  filesWithLayers,
  type PieceLayers,
  parsePieceLayers
} from './piece-layers.ts'
export { sha1, sha256, sha256Into } from './sha256.ts'
export { encodeTorrent, type Metainfo, type MetainfoOptions, parseTorrent } from './torrent-file.ts'
export { METAINFO_BOUNDS, type MetainfoReason, type TorrentFile, type TorrentInfo } from './torrent-info.ts'
