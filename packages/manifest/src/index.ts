export type { PieceLayers, TorrentFile, TorrentInfo } from '@svc/metainfo'
export type { Sha256Digest } from '@svc/ref'
export { canonicalBytes, MAX_DOCUMENT_BYTES, parseCanonical, sealDocument } from './canonical.ts'
export { ClaimedNames, defectOfFileName } from './claimed-names.ts'
export {
  COMPANION_BOUNDS,
  type CompanionFile,
  type Companions,
  type OmissionReason,
  type OmittedFile,
  parseCompanions,
  sealCompanions
} from './companions.ts'
export { ManifestError, type ManifestErrorCode, type ManifestErrorReason } from './errors.ts'
export {
  AUX_ROLES,
  CODE_ROLES,
  CONFIG_NAME,
  compareFiles,
  defectOfName,
  isFileKind
} from './file-rules.ts'
export { parseManifest, parseSealedManifest, parseStoredManifest, sealManifest } from './manifest.ts'
export { MAX_MODEL_CONFIG_BYTES, type ModelConfig, parseModelConfig, sealModelConfig } from './model-config.ts'
export { type FolderFile, type FolderSource, MARKER, modelFiles } from './model-files.ts'
export { mergeIndex, parseIndex, sealIndex, shrinkIndex } from './model-index.ts'
export { parseRecord, sealRecord } from './record.ts'
export {
  type ArtifactFile,
  type ArtifactTorrent,
  companionsTorrent,
  manifestPath,
  pieceLayersOf,
  pieceLengthFor,
  torrentName,
  torrentOf
} from './torrent.ts'
export type { DistributionRecord, FileKind, IndexMember, Manifest, ManifestFile, ModelIndex, Sealed } from './types.ts'
