import type { Sha256Digest } from '@svc/ref'
import type { AuxRole, CodeRole, SkipReason } from './table.ts'

/** One upstream file as listed; its content has not been read. */
export interface ListedFile {
  /** Artifact-relative path with `/`. */
  readonly name: string
  readonly sizeBytes: number
}

/** The manifest's kinds except `config`, in their order within a manifest (spec doc.7). */
export type EntryKind =
  | 'weights.gguf'
  | 'weights.safetensors'
  | 'weights.aux'
  | 'tokenizer'
  | 'chat-template'
  | 'adapter'
  | 'code'
  | 'opaque'

/** A file that goes into one of an artifact's tars, under the given name. */
export interface TarMember {
  /** The name inside the tar. */
  readonly name: string
  /** The upstream path of its content. */
  readonly from: string
  readonly sizeBytes: number
}

/**
 * The source of an entry's bytes: one upstream file unchanged, or a deterministic tar of several (members in tar
 * order).
 */
export type EntryContent =
  | { readonly from: 'file'; readonly name: string }
  | { readonly from: 'tar'; readonly members: readonly TarMember[] }

/** A future manifest entry. */
export interface ManifestEntry {
  readonly kind: EntryKind
  /** Artifact-relative and unique; no first segment `manifest`. */
  readonly name: string
  /** Size of the entry; for a tar including headers and padding. */
  readonly sizeBytes: number
  readonly content: EntryContent
  readonly role?: AuxRole | CodeRole
  /** Quant token of the name of a projector, draft head or adapter, in lower case. */
  readonly variant?: string
  /** Number of a shard, from 1. */
  readonly part?: number
  /** Identifies the shard set, equal for all its shards; not part of a manifest. */
  readonly group?: string
  /**
   * Of safetensors with normalized names: the forms of the model that it is part of (spec rec.30), the empty text for the one that
   * comes by default; absent if there is only that one. Not part of a manifest.
   */
  readonly forms?: readonly string[]
  /** Of a shared entry: the quants whose artifacts have it; absent for all. Not part of a manifest. */
  readonly goesWith?: readonly string[]
  /** The quant of the file name, on `weights.gguf` only, with normalized names also qualified; not part of a manifest. */
  readonly quant?: string
}

/** How the names of a listing are read (spec add.1). With `opaque` they say nothing: every file is taken as it is (spec rec.32). */
export type NamesRead = 'upstream' | 'normalized' | 'opaque'

/** Something the user of an import should know. `message` is for people; programs use `code` and `names`. */
export interface Warning {
  readonly code: WarningCode
  readonly names: readonly string[]
  readonly message: string
}
/** What a warning is about. Stable, for programs. */
export type WarningCode =
  | 'incomplete-shards'
  | 'shard-numbering'
  | 'incomplete-adapter'
  | 'chat-template-superseded'
  | 'non-lora-trainables'
  | 'reserved-name'
  | 'same-model-twice'
  | 'other-form'
  | 'split-file'
  | 'formats-meet'
  | 'models-meet'
  | 'quants-meet'
  | 'unreadable-header'
  | 'damaged-weights'
  | 'header-type'
  | 'split-mismatch'
  | 'config-unreadable'
  | 'config-not-kept'
  | 'licence-unreadable'
  | 'licence-not-kept'
  | 'pickle'

/** What one upstream file is used for. Every file of the listing has exactly one use. */
export type FileUse =
  /** Its bytes become the entry `entry`. */
  | { readonly use: 'entry'; readonly entry: string }
  /** Its bytes go into the tar `entry`: staged, without a blob of its own. */
  | { readonly use: 'member'; readonly entry: string }
  /** The root `config.json`: staged. */
  | { readonly use: 'config' }
  /** Staged; its text becomes an annotation. `detect` is false for notices. */
  | { readonly use: 'licence'; readonly detect: boolean }
  | { readonly use: 'skip'; readonly reason: SkipReason }

/** The content of a listing, by its names alone. All lists have a fixed order, whatever the order of the listing. */
export interface Recognition {
  readonly names: NamesRead
  /** In manifest order (spec doc.7), without the config entry. */
  readonly entries: readonly ManifestEntry[]
  /** By upstream path. */
  readonly uses: ReadonlyMap<string, FileUse>
  /** Its length is `result.skipped` of an import. */
  readonly skipped: readonly { readonly name: string; readonly reason: SkipReason }[]
  readonly warnings: readonly Warning[]
  /** The root `config.json`, if there is one. */
  readonly config: ListedFile | undefined
  readonly licences: readonly (ListedFile & { readonly detect: boolean })[]
}

/** What `requiredReads` needs of one file. */
export type ReadKind = 'safetensors-header' | 'gguf-head' | 'start' | 'config' | 'licence'
/** Narrows by `what`. */
export type RequiredRead<K extends ReadKind = ReadKind> = K extends ReadKind
  ? ListedFile & {
      readonly what: K
      /**
       * No byte at or beyond this offset is used. For a safetensors it is the upper bound of a header: only 8 bytes
       * plus the length in them are read.
       */
      readonly maxBytes: number
    }
  : never

/** Bytes `[offset, offset + lengthBytes)` of a file; fewer only where the file ends. */
export type ReadAt = (offset: number, lengthBytes: number) => Promise<Uint8Array>

/** Why the header of a weights file could not be read. Never fatal (spec rec.12). */
export interface HeaderProblem {
  readonly format: 'unreadable'
  /** The defect, e.g. `tensor offsets leave a gap at byte 12`. */
  readonly problem: string
  /** What the bytes appear to be, e.g. `a Git LFS pointer`; undefined if unknown. */
  readonly looksLike: string | undefined
}

/** The facts from a safetensors header. Made by `readHeader`. */
export interface SafetensorsSummary {
  readonly format: 'safetensors'
  readonly headerBytes: number
  readonly tensorCount: number
  /** Bytes of tensor data per dtype. A known dtype counts shape × bits, an unknown one its offset span. */
  readonly bytesByDtype: ReadonlyMap<string, number>
}

/** The facts from the head of a GGUF file, as far as it was read. Made by `readGgufHead` and `parseGgufHead`. */
export interface GgufSummary {
  readonly format: 'gguf'
  readonly version: 1 | 2 | 3
  readonly bigEndian: boolean
  /** False when there are key/values beyond the bytes that were read; these are unknown. */
  readonly complete: boolean
  /** `general.type`, e.g. `model`, `mmproj`, `adapter`. */
  readonly type?: string
  /** `general.architecture`. */
  readonly architecture?: string
  /** `<architecture>.context_length`. */
  readonly contextLength?: number
  /** `split.no`, from 0. */
  readonly splitNo?: number
  readonly splitCount?: number
  /** `general.file_type`. Informative only: it never decides the quant. */
  readonly fileType?: number
  /** What is wrong with the tensors that it lists: they end beyond the file, overlap or are not aligned. */
  readonly defect?: string
}

/** What the start of an opaque file tells. */
export interface OpaqueSummary {
  readonly format: 'opaque'
  /** It runs code when it is loaded. */
  readonly isPickle: boolean
}

/** The facts from a weights file's header, or why there are none; `format` tells which. */
export type HeaderSummary = SafetensorsSummary | GgufSummary | OpaqueSummary | HeaderProblem

/** The facts from the root `config.json`. Made by `readConfig`. */
export interface ConfigFacts {
  /** The unmodified text, including a BOM; absent when it is not UTF-8 or too long to be kept. */
  readonly upstream?: string
  readonly family?: string
  readonly contextLength?: number
  /** Step 2 of the quant derivation. */
  readonly quant?: string
  /** What takes its place with normalized names (spec rec.29). */
  readonly normalizedQuant?: string
  readonly warnings: readonly Warning[]
}

/** A licence file's content. */
export interface LicenceFact {
  readonly name: string
  /** Of the whole file; it identifies an unknown text. */
  readonly digest: Sha256Digest
  /** The whole file, or undefined when it is larger than `maxBytes` of its required read. */
  readonly bytes: Uint8Array | undefined
}

/** The facts from the files listed by `requiredReads`. */
export interface Facts {
  /** By upstream path: one per `safetensors-header` and `gguf-head`; of `start` those that were read. */
  readonly headers: ReadonlyMap<string, HeaderSummary>
  /** Required if `recognition.config` is present. */
  readonly config?: ConfigFacts | undefined
  /** One per `licence`. */
  readonly licences: readonly LicenceFact[]
}

/** Contents of the model config, our own document behind the entry `modelconfig.json` (spec doc.9). */
export interface ModelConfigFacts {
  readonly family?: string
  /** `gguf`, `safetensors` or both with a `+`; of an opaque artifact what its names tell, such as `onnx`. */
  readonly weightsFormat?: string
  readonly quantization: string
  readonly contextLength?: number
  /** The upstream `config.json`, verbatim. */
  readonly upstream?: string
}

/** One artifact to seal: a member of the model index. */
export interface ArtifactPlan {
  readonly quant: string
  /** In manifest order; the config entry precedes them and is made from `modelConfig`. */
  readonly entries: readonly ManifestEntry[]
  readonly modelConfig: ModelConfigFacts
  /** `svc.specVersion`, `svc.license`, `svc.license.file.<path>`; the caller adds those of the source. */
  readonly annotations: Readonly<Record<string, string>>
}

/** What an import stores: the artifacts, one per quant. Made by `planArtifacts`. */
export interface PlannedArtifacts {
  /** Sorted by quant, at least one. */
  readonly artifacts: readonly ArtifactPlan[]
  /** Those of the recognition, then those of the facts. */
  readonly warnings: readonly Warning[]
}
