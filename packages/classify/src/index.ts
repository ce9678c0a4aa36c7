export { type AuxChoice, type Choice, needsSafetensorsQuant, notChosen, quantsOf } from './choose.ts'
export { MAX_CONFIG_DEPTH, readConfig } from './config.ts'
export { ClassifyError, type ClassifyErrorCode, type ClassifyErrorDetails } from './errors.ts'
export { parseGgufHead, readGgufHead } from './gguf.ts'
export { globTest, MAX_GLOB_CHARS, MAX_GLOBS } from './globs.ts'
export { readHeader } from './header.ts'
export { detectLicence, licenceIds, licenceRef, MIN_LEAD, MIN_SIMILARITY } from './licence.ts'
export { looksLike } from './looks.ts'
export { checkNames, isReservedName, MAX_NAME_BYTES, type NameProblem, nameProblem } from './names.ts'
export { normalisedName, normalisedNames } from './normalise.ts'
export { compareNames } from './order.ts'
export { planArtifacts, safetensorsQuant, warningsOfNames } from './plan.ts'
export { configQuant, dtypeQuant, ggufModelName, ggufQuant, projectorVariant, RAW } from './quant.ts'
export {
  GGUF_HEAD_BYTES,
  MAX_CONFIG_BYTES,
  MAX_LICENCE_BYTES,
  MAX_SAFETENSORS_HEADER_BYTES,
  requiredReads
} from './reads.ts'
export { isImportable, recognise, requireImportable } from './recognise.ts'
export { readSafetensorsHeader } from './safetensors.ts'
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
export {
  type PlannedTarFile,
  planTar,
  type TarFile,
  type TarPlan,
  type TarSource,
  tarSizeBytes,
  writeTar
} from './tar.ts'
export type {
  ArtifactPlan,
  ConfigFacts,
  Entry,
  EntryContent,
  EntryKind,
  Facts,
  FileUse,
  GgufSummary,
  HeaderProblem,
  HeaderSummary,
  ImportPlan,
  LicenceFact,
  ListedFile,
  ModelConfigFacts,
  ReadAt,
  ReadKind,
  Recognition,
  RequiredRead,
  SafetensorsSummary,
  TarMember,
  Warning,
  WarningCode
} from './types.ts'
