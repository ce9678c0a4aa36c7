export type { Sha256Digest } from '@svc/ref'
export { bytesOf, writeArchive } from './archive.ts'
export type { BlobContent, ContentSegment, CopyOptions } from './content.ts'
export { type Credentials, type CredentialsOptions, findCredentials } from './credentials.ts'
export {
  type Descriptor,
  type OciDocument,
  type OciIndex,
  type OciManifest,
  parseOciIndex,
  parseOciManifest
} from './document.ts'
export { OciError, type OciErrorCode, type OciErrorDetails } from './errors.ts'
export { type BlobSink, type FetchOptions, fetchBlob } from './fetch-blob.ts'
export { packImage } from './image.ts'
export { writeLayout } from './layout.ts'
export {
  DOCKER_MANIFEST_TYPE,
  INDEX_TYPE,
  MANIFEST_TYPE,
  PIN_ANNOTATION,
  REF_ANNOTATION
} from './media-types.ts'
export { packOllama } from './ollama.ts'
export { type BlobPlace, type OpenedLayout, openLayout } from './open-layout.ts'
export { type PackedImage, type PackedLayer, type PackFile, type PackInput, packArtifact } from './pack.ts'
export { type Pushed, type PushOptions, pushImage } from './push.ts'
export { OCI_DOCUMENT_ERRORS, OCI_DOCUMENTS, type OciDocuments, type ReadOciDocument } from './read-document.ts'
export { readPlace } from './read-place.ts'
export {
  formatRegistryReference,
  parseRegistryReference,
  type RegistryReference,
  tryParseRegistryReference
} from './reference.ts'
export { type RegistryCallOptions, type RegistryOptions, Repository } from './registry.ts'
export type { RetryOptions } from './retry.ts'
export { chooseManifest, modelOf, type Naming, type OciFile, type OciModel } from './unpack.ts'
