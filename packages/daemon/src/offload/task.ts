import type { ImportPlan, LicenceFact, ListedFile, Recognition } from '@svc/classify'

/** One header to read from a blob in place. */
export interface HeaderRead {
  readonly name: string
  readonly what: 'safetensors-header' | 'gguf-head'
  readonly sizeBytes: number
  /** The blob's file. */
  readonly path: string
}

/** Reads the headers of weights and plans the artifacts. */
export interface PlanTask {
  readonly kind: 'plan'
  readonly recognition: Recognition
  readonly headers: readonly HeaderRead[]
  /** Bytes of the root `config.json`; `tooLarge` where it was not read. Absent where there is none. */
  readonly config: Uint8Array | 'tooLarge' | undefined
  readonly licences: readonly LicenceFact[]
}

/** Work that would hold up the event loop: folding leaf layers, recognising long listings, parsing headers of weights, matching licence texts. */
export type OffloadTask =
  /** The pieces root of a leaf layer. */
  | { readonly kind: 'root'; readonly leaves: Uint8Array; readonly sizeBytes: number }
  /** Root and piece layer of a leaf layer kept in a file. */
  | { readonly kind: 'layer'; readonly path: string; readonly sizeBytes: number; readonly pieceLengthBytes: number }
  /** What each name of a listing is. */
  | { readonly kind: 'recognise'; readonly listing: readonly ListedFile[] }
  | PlanTask

/** What each kind of task gives. */
export interface OffloadResults {
  readonly root: Uint8Array
  readonly layer: { readonly root: Uint8Array; readonly layer: Uint8Array } | undefined
  readonly recognise: Recognition
  readonly plan: ImportPlan
}

/** What the thread answers: the result of a task, or how it failed. */
export type OffloadReply =
  | { readonly id: number; readonly result: unknown }
  | {
      readonly id: number
      readonly failure: {
        readonly code?: string
        readonly message: string
        readonly details?: unknown
        readonly stack?: string | undefined
      }
    }
