export {
  type Sha256Digest,
  digestBytes,
  digestFromBytes,
  digestFromHex,
  digestHex,
  isDigest,
  parseDigest,
  tryParseDigest
} from './digest.ts'
export { RefError, type RefErrorCode, type RefErrorDetails, type RefErrorReason } from './errors.ts'
export { REF_MAX_BYTES } from './length.ts'
export {
  CONFIG_QUANT_FORMATS,
  CONFIG_QUANT_METHODS,
  QUANT_MAX_CHARS,
  QUANT_WORDS,
  isQuant,
  isQuantToken
} from './quant.ts'
export {
  type DigestRef,
  type ModelRef,
  type SelectorRef,
  formatRef,
  formatShortRef,
  parseRef,
  parseShortRef,
  tryParseRef,
  tryParseShortRef
} from './ref.ts'
export {
  RESERVED_NAMESPACES,
  type RepoId,
  formatRepoId,
  isName,
  isNamespace,
  isReservedNamespace,
  parseRepoId,
  tryParseRepoId
} from './repo-id.ts'
export {
  type MemberSelector,
  type RepoSnapshots,
  type SelectableMember,
  selectMember,
  selectSnapshot
} from './select.ts'
export { isTag, parseTag } from './tag.ts'
