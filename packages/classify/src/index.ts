export { readConfig } from './config.ts'
export { ClassifyError, type ClassifyErrorCode, type ClassifyErrorDetails } from './errors.ts'
export { type GgufFacts, ggufFacts, readGgufHead } from './gguf.ts'
export { globTest } from './globs.ts'
export { readHeader } from './header.ts'
export { detectLicence } from './licence.ts'
export { isForLoaders, isLeftOut, isSecretByName } from './loaders.ts'
export { type CacheShape, cacheNeed, configCache, ggufCache } from './memory.ts'
export { checkNames, type NameProblem, nameProblem } from './names.ts'
export { normalisedName, normalisedNames } from './normalise.ts'
export { planArtifacts, safetensorsQuant, warningsOfNames } from './plan.ts'
export { configQuant, dtypeQuant, ggufQuant, RAW } from './quant.ts'
export { GGUF_HEAD_BYTES, MAX_CONFIG_BYTES, MAX_LICENCE_BYTES, requiredReads } from './reads.ts'
export { isImportable, recognise, requireImportable } from './recognise.ts'
export { readSafetensorsHeader } from './safetensors.ts'
export {
  type AuxSelection,
  type FileSelection,
  isWeights,
  needsSafetensorsQuant,
  notChosen,
  quantsOf
} from './selection.ts'
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
