export {
  type Comparison,
  type ComparisonOptions,
  compareWithFiles,
  defectsOf,
  type HashPart,
  isBelow,
  type ModelFile
} from './compare.ts'
export { SignatureError, type SignatureErrorCode, type SignatureErrorReason } from './errors.ts'
export { type ModelToSign, type SigningKey, signModel } from './sign.ts'
export { DEFAULT_IGNORED, type SignedModel, type SignedResource } from './statement.ts'
export {
  type Identity,
  requireReadable,
  type Signer,
  type Trust,
  type VerifiedModel,
  verifySignature
} from './verify.ts'
