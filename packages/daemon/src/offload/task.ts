import type { ImportPlan, LicenceFact, ListedFile, Recognition } from '@svc/classify'

/** A header that is read in place, from a blob's file. */
export interface HeaderRead {
  readonly name: string
  readonly what: 'safetensors-header' | 'gguf-head'
  readonly sizeBytes: number
  /** The blob's file. */
  readonly path: string
}

/** What {@link OffloadTasks} `plan` works with. */
export interface PlanRequest {
  readonly recognition: Recognition
  readonly headers: readonly HeaderRead[]
  /** Bytes of the root `config.json`; `tooLarge` where it was not read. Absent where there is none. */
  readonly config: Uint8Array | 'tooLarge' | undefined
  readonly licences: readonly LicenceFact[]
}

/** What {@link OffloadTasks} `layer` works with. */
export interface LayerRequest {
  readonly path: string
  readonly sizeBytes: number
  readonly pieceLengthBytes: number
}

/** Work that would hold up the event loop, by name. */
export interface OffloadTasks {
  /** The pieces root of a leaf layer. */
  root: { request: { readonly leaves: Uint8Array; readonly sizeBytes: number }; response: Uint8Array }
  /** Root and piece layer of a leaf layer kept in a file; undefined where the file does not hold such a layer. */
  layer: {
    request: LayerRequest
    response: { readonly root: Uint8Array; readonly layer: Uint8Array } | undefined
  }
  /** What each name of a listing is. */
  recognise: { request: readonly ListedFile[]; response: Recognition }
  /** Reads the headers of weights, and plans the artifacts. */
  plan: { request: PlanRequest; response: ImportPlan }
}
