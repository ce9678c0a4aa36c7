import type { ModelSource } from './sources.ts'

/** A file of an operation that is under way. */
export interface FileInProgress {
  readonly name: string
  readonly bytesDone: number
  readonly bytesTotal: number
}

/** How far an operation is; absent fields are unchanged. */
export interface OperationProgress {
  readonly filesDone?: number
  readonly filesTotal?: number
  readonly bytesDone?: number
  readonly bytesTotal?: number
  readonly files?: readonly FileInProgress[]
}

/** How an operation is watched and ended. */
export interface WorkOptions {
  /** Ends the operation, which rejects with its reason. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: OperationProgress) => void) | undefined
}

/** What a reference names. Digests are `sha256:<hex>`. */
export interface ResolvedModel {
  /** Canonical, the selector as typed. */
  readonly ref: string
  readonly ns: string
  readonly name: string
  readonly quant?: string
  readonly manifestDigest: string
  readonly indexDigest?: string
}

/** A file of a model that is here. */
export interface StoredFile {
  readonly digest: string
  /** Absolute. */
  readonly path: string
  readonly size: number
  /** In the model; absent for documents. */
  readonly name?: string
  /** Such as `weights.gguf`. */
  readonly kind?: string
}

/** A file beside the weights, such as a tokenizer. */
export interface StoredCompanion {
  /** In the model's folder at the source. */
  readonly path: string
  readonly digest: string
  readonly size: number
  /** Absolute. */
  readonly blobPath: string
}

/** A model and where its files are. */
export interface LocatedModel extends ResolvedModel {
  /** The documents, then the model's files in order; those that are here. */
  readonly files: readonly StoredFile[]
  /** Digests of what is missing; absent when nothing is. */
  readonly missing?: readonly string[]
  /** Absent when none were imported, or their list is lost. */
  readonly companions?: {
    /** Of the document that lists them. */
    readonly digest: string
    /** Those that are here. */
    readonly files: readonly StoredCompanion[]
  }
}

/** A model of the store, in a list. */
export interface ModelEntry {
  /** `svc:///ns/name:quant` */
  readonly ref: string
  readonly manifestDigest: string
  readonly sizeBytes: number
  readonly isComplete: boolean
}

/** What an import made. */
export interface ImportedModels {
  /** One for each quant. */
  readonly manifests: readonly string[]
  readonly quants?: readonly string[]
  /** For people. */
  readonly warnings?: readonly string[]
}

/** Empty lists for a sound store. */
export interface VerifyFindings {
  /** Corrupt, and in quarantine now. */
  readonly mismatched: readonly string[]
  readonly missing: readonly string[]
  /** Records and blobs that cannot be read, for people. */
  readonly stateErrors: readonly string[]
}

/** What can be read beside the process that owns a store. Errors have a stable `code`. */
export interface ReadableModels {
  /** From local state alone. @throws `E_PARSE`, `E_UNKNOWN_REF`, `E_NO_MEMBER`, `E_AMBIGUOUS_SELECTOR` */
  resolve(ref: string): Promise<ResolvedModel>
  /** Absolute paths, verified when they came in. They stay as long as this process has it open. @throws as `resolve` */
  open(ref: string): Promise<LocatedModel>
  /** Sorted by reference. */
  list(): Promise<readonly ModelEntry[]>
  close(): Promise<void>
}

/** A store of models: this process's own, or that of a daemon. */
export interface Models extends ReadableModels {
  /**
   * Brings models into the store, each file verified, under a name `ns/name`.
   * @throws `E_NOT_IMPORTABLE`; for another place also `E_SOURCE_UNAVAILABLE`, `E_SOURCE_FORBIDDEN`
   */
  import(source: ModelSource, as: string, options?: WorkOptions): Promise<ImportedModels>
  /** Fetches what is missing, if it is known from where. @throws as `open`; `E_SOURCE_UNAVAILABLE` */
  ensure(ref: string, options?: WorkOptions): Promise<LocatedModel>
  /** Hashes `all`, or what a reference or digest names. */
  verify(target: string, options?: WorkOptions): Promise<VerifyFindings>
}

/** The blobs of a model that are here, by digest. */
export const blobsOf = ({ files, companions }: LocatedModel): readonly string[] => [
  ...files.map(({ digest }) => digest),
  ...(companions === undefined ? [] : [companions.digest, ...companions.files.map(({ digest }) => digest)])
]
