export {
  digestBytes,
  digestFromBytes,
  digestFromHex,
  digestHex,
  isDigest,
  parseDigest,
  type Sha256Digest,
  tryParseDigest,
  tryParseTypedDigest
} from './digest.ts'
export { RefError, type RefErrorCode, type RefErrorDetails, type RefErrorReason } from './errors.ts'
export { isTensorLayer, layerBase, layerNames } from './layer-name.ts'
export { compareText } from './order.ts'
export {
  CONFIG_QUANT_FORMATS,
  CONFIG_QUANT_METHODS,
  isFileQuant,
  isPlainQuant,
  isQuant,
  isQuantToken,
  QUANT_MAX_CHARS,
  QUANT_WORDS,
  unqualified
} from './quant.ts'
export {
  type DigestRef,
  formatRef,
  formatShortRef,
  type ModelRef,
  parseRef,
  parseShortRef,
  type SelectorRef,
  tryParseRef,
  tryParseShortRef
} from './ref.ts'
export type { RepoId } from './repo.ts'
export {
  formatRepoId,
  isName,
  isNamespace,
  isReservedNamespace,
  parseRepoId,
  tryParseRepoId
} from './repo-id.ts'
export {
  type MemberSelector,
  type RepoIndexes,
  type SelectableMember,
  selectIndex,
  selectMember
} from './select.ts'
export { isTag, parseTag } from './tag.ts'
