export {
  BencodeDictionary,
  type BencodeList,
  type BencodeReason,
  type BencodeValue,
  compareBytes,
  type DecodeOptions,
  decodeBencode,
  decodeBencodePrefix,
  type Encodable,
  encodeBencode,
  RawBencode
} from './bencode.ts'
export { SwarmError, type SwarmErrorCode } from './errors.ts'
export { createFileStorage, type FileStorageOptions } from './file-storage.ts'
export {
  defectOfHashRequest,
  type HashRequest,
  leavesForRequest,
  nodeOfReply,
  PieceTree,
  type ProvenNode,
  replyLength,
  type TreeShape,
  treeHeight,
  uncleCount,
  verifyReply
} from './hash-request.ts'
export type { LayoutFile, TorrentLayout } from './layout.ts'
export { leafHasherUrl } from './leaf-hasher-url.ts'
export * from './merkle.ts'
export * from './metainfo.ts'
export { formatAddress, isPublicAddress, type PeerAddress, tryParseAddress } from './net/address.ts'
export { PieceLayerAssembler, type ReplyVerdict } from './piece-layer-assembler.ts'
export type { ByteRanges, FileState, FileWriter, TorrentStorage } from './storage.ts'
export { createSwarm, type Swarm, type SwarmOptions } from './swarm.ts'
export type {
  Torrent as SwarmTorrent,
  TorrentEvents,
  TorrentOptions as SwarmTorrentOptions,
  TorrentProgress,
  TorrentState,
  TorrentWarning
} from './torrent/torrent.ts'
