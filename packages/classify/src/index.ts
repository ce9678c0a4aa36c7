export type { Sha256Digest } from '@svc/ref'
export { quantOfConfig, readConfig } from './config.ts'
export { ClassifyError, type ClassifyErrorCode, type ClassifyErrorDetails } from './errors.ts'
export { type FileFormat, formatsIn } from './file-formats.ts'
export { DEFAULT_FORM } from './forms.ts'
export { type GgufFacts, ggufFacts, readGgufHead } from './gguf.ts'
export {
  type GgufIdentity,
  type GgufIdentityFound,
  type GgufWalk,
  readGgufIdentity,
  walkGgufHead
} from './gguf-identity.ts'
export { type GgufContents, ggufDefect, readGgufContents } from './gguf-tensors.ts'
export { globTest } from './globs.ts'
export { readHeader } from './header.ts'
export { type Inspection, type InspectThreads, inspectFiles, inspectText, type ModelFinding } from './inspect.ts'
export type { JsonFinding } from './inspect-json.ts'
export { type HeadFindings, inspectGgufHead } from './inspect-weights.ts'
export { detectLicence } from './licence.ts'
export { isForLoaders, isSecretByName, leftOutTest, type OwnersChoice, type SignedFolder } from './loaders.ts'
export { type CacheShape, cacheNeed, configCache, ggufCache } from './memory.ts'
export { checkNames, type NameProblem, nameProblem } from './names.ts'
export { namesHere } from './names-by-header.ts'
export { headsToRead, normalizedName, normalizedNames } from './normalize.ts'
export { goesWithAny, refusePickles } from './opaque.ts'
export { isPickle, isPickleByName, mayBePickle, PICKLE_START_BYTES } from './pickles.ts'
export { type PieceSet, pieceSets } from './pieces.ts'
export { damagedWeights, planArtifacts, safetensorsQuant, warningsOfNames } from './plan.ts'
export { configQuant, dtypeQuant, ggufQuant, normalizedQuant, RAW } from './quant.ts'
export { GGUF_HEAD_BYTES, MAX_CONFIG_BYTES, MAX_LICENCE_BYTES, requiredReads } from './reads.ts'
export { isImportable, recognize, requireImportable } from './recognize.ts'
export { readSafetensorsHeader } from './safetensors.ts'
export {
  type AuxSelection,
  type Chosen,
  chosenOf,
  type FileSelection,
  formQuant,
  isAdapter,
  isWeights,
  needsSafetensorsQuant,
  quantsOf
} from './selection.ts'
export { type Shard, type ShardName, shardOf } from './shards.ts'
export {
  type AuxRole,
  type CodeRole,
  type Outcome,
  outcomeOf,
  type Row,
  type SkipReason,
  SPEC_VERSION,
  TABLE
} from './table.ts'
export { type PlannedTarFile, planTar, type TarFile, type TarPlan, type TarSource, writeTar } from './tar.ts'
export type {
  ArtifactPlan,
  ConfigFacts,
  EntryContent,
  EntryKind,
  Facts,
  FileUse,
  GgufSummary,
  HeaderProblem,
  HeaderSummary,
  LicenceFact,
  ListedFile,
  ManifestEntry,
  ModelConfigFacts,
  NamesRead,
  OpaqueSummary,
  PlannedArtifacts,
  ReadAt,
  ReadKind,
  Recognition,
  RequiredRead,
  SafetensorsSummary,
  TarMember,
  Warning,
  WarningCode
} from './types.ts'
