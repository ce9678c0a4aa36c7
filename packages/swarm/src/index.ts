export {
  type BencodeList,
  type BencodeReason,
  type BencodeValue,
  BencodeDictionary,
  compareBytes,
  type DecodeOptions,
  decodeBencode,
  decodeBencodePrefix,
  type Encodable,
  encodeBencode,
  RawBencode
} from './bencode.ts'
export { SwarmError, type SwarmErrorCode } from './errors.ts'
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
export { leafHasherUrl } from './leaf-hasher-url.ts'
export * from './merkle.ts'
export * from './metainfo.ts'
export { PieceLayerAssembler, type ReplyVerdict } from './piece-layer-assembler.ts'
