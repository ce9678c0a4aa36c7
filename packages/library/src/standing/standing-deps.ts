import type { Library } from '@svc/internal-state'
import type { Manifest, ModelConfig } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { StandingFile, StandingLayout, StandingModel } from '@svc/view'

/** A tool's folder that follows the store (spec conf.10). */
export interface StandingFolder {
  readonly layout: StandingLayout
  /** Absolute. */
  readonly path: string
  /** As written; empty: all models. */
  readonly match: readonly string[]
  /** Whether `ns/name:quant` is shown. */
  readonly matches: (ref: string) => boolean
  /** The files are copies; default: links. */
  readonly copy?: boolean | undefined
  /** Of llama-server's router, which is told of changes: an address of this machine. */
  readonly reload?: string | undefined
}

/** A folder that follows, and what it shows now. */
export interface StandingView {
  readonly layout: StandingLayout
  readonly path: string
  readonly match?: string[]
  readonly copy?: true
  readonly reload?: string
  readonly entries: number
  /** The space that copies take beyond the store's. */
  readonly copiedBytes?: number
  /** While it is being changed: bytes copied so far. */
  readonly bytesDone?: number
  /** Names that something else has there. */
  readonly taken?: string[]
  /** Why it does not follow. */
  readonly problem?: string
}

/** A model for Ollama. */
export interface OllamaModel {
  readonly files: readonly (StandingFile & { readonly digest: Sha256Digest })[]
  readonly manifestDigest: Sha256Digest
  readonly annotations: Manifest['annotations']
  readonly model: ModelConfig
}

/** What standing views need. */
export interface StandingDeps
  extends Pick<Library, 'store' | 'clock' | 'log' | 'repos' | 'documents' | 'artifacts' | 'views'> {
  /** Those that follow from the start. */
  readonly folders: readonly StandingFolder[]
  /** Keeps a folder, or its absence, beyond this process. Absent: nothing is kept. */
  readonly save?: ((path: string, folder: StandingFolder | undefined) => Promise<void>) | undefined
  /** A model as Ollama reads it; undefined for one that it does not load. */
  readonly ollamaForm: (model: OllamaModel) => Promise<StandingModel['ollama']>
}
