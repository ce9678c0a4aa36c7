import type { Sha256Digest } from '@svc/ref'
import type { AuxRole, CodeRole, SkipReason } from './table.ts'

/** One upstream file as a listing knows it. Nothing was read yet. */
export interface ListedFile {
  /** Artifact-relative path with `/`. */
  readonly name: string
  readonly sizeBytes: number
}

/** The manifest's kinds but `config`, in their order within a manifest (spec doc.7). */
export type EntryKind =
  | 'weights.gguf'
  | 'weights.safetensors'
  | 'weights.aux'
  | 'tokenizer'
  | 'chat-template'
  | 'adapter'
  | 'code'

/** A file that goes into a tar of an artifact, under the name that it has there. */
export interface TarMember {
  /** The name inside the tar. */
  readonly name: string
  /** The upstream path that its bytes come from. */
  readonly from: string
  readonly sizeBytes: number
}

/**
 * Where an entry's bytes come from: one upstream file as it is, or a deterministic tar of several (members in tar
 * order).
 */
export type EntryContent =
  | { readonly from: 'file'; readonly name: string }
  | { readonly from: 'tar'; readonly members: readonly TarMember[] }

/** A manifest entry to be. */
export interface Entry {
  readonly kind: EntryKind
  /** Artifact-relative and unique; no first segment `manifest`. */
  readonly name: string
  /** Of the entry: of a tar with headers and padding. */
  readonly sizeBytes: number
  readonly content: EntryContent
  readonly role?: AuxRole | CodeRole
  /** Lower-case quant token of a vision projector's name. */
  readonly variant?: string
  /** From 1, on shards. */
  readonly part?: number
  /** The shard set, equal for its parts; not part of a manifest. */
  readonly group?: string
  /** The quant of the file name, on `weights.gguf` only; not part of a manifest. */
  readonly quant?: string
}

/** Something that the user of an import ought to know. `message` is for people; programs go by `code` and `names`. */
export interface Warning {
  readonly code: WarningCode
  readonly names: readonly string[]
  readonly message: string
}
/** What an import went on in spite of. Stable, for programs; the message beside it is for people. */
export type WarningCode =
  | 'incomplete-shards'
  | 'shard-numbering'
  | 'incomplete-adapter'
  | 'chat-template-superseded'
  | 'non-lora-trainables'
  | 'reserved-name'
  | 'same-model-twice'
  | 'formats-meet'
  | 'models-meet'
  | 'quants-meet'
  | 'unreadable-header'
  | 'header-type'
  | 'split-mismatch'
  | 'config-unreadable'
  | 'config-not-kept'
  | 'licence-unreadable'
  | 'licence-not-kept'

/** What one upstream file is used for. Every file of the listing has exactly one use. */
export type FileUse =
  /** Its bytes are the entry `entry`. */
  | { readonly use: 'entry'; readonly entry: string }
  /** Its bytes go into the tar `entry`: staged, no blob of their own. */
  | { readonly use: 'member'; readonly entry: string }
  /** The root `config.json`: staged. */
  | { readonly use: 'config' }
  /** Staged; its text becomes an annotation. `detect` is false for notices. */
  | { readonly use: 'licence'; readonly detect: boolean }
  | { readonly use: 'skip'; readonly reason: SkipReason }

/** What a listing is, by its names alone. All lists are in a fixed order, whatever the order of the listing. */
export interface Recognition {
  /** In manifest order (spec doc.7), without the config entry. */
  readonly entries: readonly Entry[]
  /** By upstream path. */
  readonly uses: ReadonlyMap<string, FileUse>
  /** `result.skipped` of an import is the length. */
  readonly skipped: readonly { readonly name: string; readonly reason: SkipReason }[]
  readonly warnings: readonly Warning[]
  /** The root `config.json`, when there is one. */
  readonly config: ListedFile | undefined
  readonly licences: readonly (ListedFile & { readonly detect: boolean })[]
}

/** What `requiredReads` wants of one file. */
export type ReadKind = 'safetensors-header' | 'gguf-head' | 'config' | 'licence'
/** Narrows by `what`. */
export type RequiredRead<K extends ReadKind = ReadKind> = K extends ReadKind
  ? ListedFile & {
      readonly what: K
      /**
       * No byte at or beyond this offset is looked at. Of a safetensors it is the upper bound of a header: only 8 bytes
       * plus the length that they state are read.
       */
      readonly maxBytes: number
    }
  : never

/** Bytes `[offset, offset + lengthBytes)` of a file; fewer only where the file ends. */
export type ReadAt = (offset: number, lengthBytes: number) => Promise<Uint8Array>

/** Why the header of a weights file could not be read. Never fatal (spec rec.12). */
export interface HeaderProblem {
  readonly format: 'unreadable'
  /** What is wrong, e.g. `tensor offsets leave a gap at byte 12`. */
  readonly problem: string
  /**
   * What the bytes look like instead, e.g. `a Git LFS pointer`; undefined when they look like nothing in particular.
   */
  readonly looksLike: string | undefined
}

/** What the header of a safetensors file says. Made by `readHeader`. */
export interface SafetensorsSummary {
  readonly format: 'safetensors'
  readonly headerBytes: number
  readonly tensorCount: number
  /** Bytes of tensor data per dtype. A known dtype counts shape × bits, an unknown one its offset span. */
  readonly bytesByDtype: ReadonlyMap<string, number>
}

/** What the head of a GGUF file says, as far as it was read. Made by `readGgufHead` and `parseGgufHead`. */
export interface GgufSummary {
  readonly format: 'gguf'
  readonly version: 1 | 2 | 3
  readonly bigEndian: boolean
  /** False when the key/values go on beyond the bytes that were read: what follows there is unknown. */
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
  /** `general.file_type`. Informative: it never decides the quant. */
  readonly fileType?: number
}

/** What the header of a weights file says, or why it says nothing; told apart by `format`. */
export type HeaderSummary = SafetensorsSummary | GgufSummary | HeaderProblem

/** What the root `config.json` says. Made by `readConfig`. */
export interface ConfigFacts {
  /** The text as it is, BOM included; absent when it is not UTF-8 or too long to be kept. */
  readonly upstream?: string
  readonly family?: string
  readonly contextLength?: number
  /** Step 2 of the quant derivation. */
  readonly quant?: string
  readonly warnings: readonly Warning[]
}

/** A licence file, read. */
export interface LicenceFact {
  readonly name: string
  /** Of the whole file: what names an unknown text. */
  readonly digest: Sha256Digest
  /** The whole file, or undefined when it is larger than `maxBytes` of its required read. */
  readonly bytes: Uint8Array | undefined
}

/** What was read of the files that `requiredReads` names. */
export interface Facts {
  /** By upstream path: one per `safetensors-header` and `gguf-head`. */
  readonly headers: ReadonlyMap<string, HeaderSummary>
  /** When `recognition.config` is there. */
  readonly config?: ConfigFacts | undefined
  /** One per `licence`. */
  readonly licences: readonly LicenceFact[]
}

/** Contents of the model config, the document of ours behind the entry `modelconfig.json` (spec doc.9). */
export interface ModelConfigFacts {
  readonly family?: string
  readonly weightsFormat?: 'gguf' | 'safetensors' | 'gguf+safetensors'
  readonly quantization: string
  readonly contextLength?: number
  /** The upstream `config.json`, verbatim. */
  readonly upstream?: string
}

/** One artifact to be sealed: a member of the model index. */
export interface ArtifactPlan {
  readonly quant: string
  /** In manifest order; the config entry comes before them and is made of `modelConfig`. */
  readonly entries: readonly Entry[]
  readonly modelConfig: ModelConfigFacts
  /** `svc.specVersion`, `svc.license`, `svc.license.file.<path>`; those of the source are the caller's to add. */
  readonly annotations: Readonly<Record<string, string>>
}

/**
 * What an import stores: the artifacts, one for each quant, that recognised files and their headers make up. Made by
 * `planArtifacts`.
 */
export interface ImportPlan {
  /** Sorted by quant, at least one. */
  readonly artifacts: readonly ArtifactPlan[]
  /** Those of the recognition, then those of the facts. */
  readonly warnings: readonly Warning[]
}
