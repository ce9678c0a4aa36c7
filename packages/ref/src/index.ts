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
export { RefError, type RefErrorReason } from './errors.ts'
