import type {
  CacheShape,
  ConfigFacts,
  GgufWalk,
  HeaderSummary,
  HeadFindings,
  Inspection,
  JsonFinding,
  LicenceFact,
  ListedFile,
  NamesRead,
  PlannedArtifacts,
  Recognition
} from '@svc/classify'

/** A header that is read directly from a blob's file. */
export interface HeaderRead {
  readonly name: string
  readonly what: 'safetensors-header' | 'gguf-head' | 'start'
  readonly sizeBytes: number
  /** The blob's file. */
  readonly path: string
}

/** A file that is read directly from a blob's file, or a range of it. */
export interface InspectedFile {
  readonly name: string
  readonly path: string
  readonly offset: number
  readonly sizeBytes: number
}

export interface PlanRequest {
  readonly recognition: Recognition
  readonly headers: readonly HeaderRead[]
  /** Bytes of the root `config.json`; `tooLarge` if it was not read. Absent if there is none. */
  readonly config: Uint8Array | 'tooLarge' | undefined
  readonly licences: readonly LicenceFact[]
}

/** Work that would block the event loop, by name. */
export interface OffloadTasks {
  /** The pieces root of the leaf layer of a file of more than 1 MiB, and the nodes that cover 1 MiB each. */
  root: {
    request: { readonly leaves: Uint8Array; readonly sizeBytes: number }
    response: { readonly root: Uint8Array; readonly subtrees: Uint8Array }
  }
  /** Root and piece layer of a file of more than one piece, from the nodes that cover 1 MiB each. */
  fold: {
    request: { readonly subtrees: Uint8Array; readonly sizeBytes: number; readonly pieceLengthBytes: number }
    response: { readonly root: Uint8Array; readonly layer: Uint8Array }
  }
  recognize: {
    request: { readonly listing: readonly ListedFile[]; readonly names: NamesRead }
    response: Recognition
  }
  plan: { request: PlanRequest; response: PlannedArtifacts }
  /** Of an open file, whose descriptor stays open until the answer. */
  header: {
    request: Pick<HeaderRead, 'name' | 'what' | 'sizeBytes'> & { readonly fd: number }
    response: HeaderSummary
  }
  /** What files run code when they are loaded, or are malformed. */
  inspect: { request: { readonly files: readonly InspectedFile[] }; response: Inspection }
  /** The check of a configuration or a template. */
  inspectText: { request: { readonly name: string; readonly bytes: Uint8Array }; response: readonly JsonFinding[] }
  /** The check of the start of a GGUF. */
  inspectHead: { request: { readonly head: Uint8Array; readonly sizeBytes: number }; response: HeadFindings }
  /** Over the start of a GGUF. */
  walk: { request: { readonly head: Uint8Array; readonly sizeBytes: number }; response: GgufWalk }
  config: { request: Uint8Array; response: ConfigFacts }
  /** The memory that a context takes, or why that is unknown: by the head of a GGUF, or the text of a `config.json`. */
  cache: {
    request: { readonly head: Uint8Array; readonly sizeBytes: number } | { readonly config: string | undefined }
    response: { readonly shape: CacheShape | string; readonly defect?: string }
  }
}
