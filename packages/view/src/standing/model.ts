import type { Sha256Digest } from '@svc/ref'

/** The tools whose folders can follow the store by themselves. */
export const STANDING_LAYOUTS = ['hf', 'llama', 'lmstudio', 'comfyui', 'ollama'] as const
/** The folder of another tool that a standing view keeps up to date. */
export type StandingLayout = (typeof STANDING_LAYOUTS)[number]

/** A file of a model, and where its bytes are. */
export interface StandingFile {
  /** Within the model; that of the publisher in layout `hf`. */
  readonly name: string
  /** Of the manifest's entry. */
  readonly kind: string
  readonly role?: string | undefined
  readonly sizeBytes: number
  /** Absent for a file that was unpacked. */
  readonly digest?: Sha256Digest | undefined
  /** Absolute: a blob of the store, or a file that was unpacked from one. */
  readonly path: string
}

/** A complete model of the store. */
export interface StandingModel {
  readonly ns: string
  readonly name: string
  readonly quant: string
  readonly manifest: Sha256Digest
  /** Its repository and commit at the hub; `listed`: every file that the commit has there, if that is known. */
  readonly hub?:
    | { readonly repo: string; readonly commit: string | undefined; readonly listed?: readonly string[] | undefined }
    | undefined
  /** Whether its publisher's `config.json` is known: it is a folder for a loader, not one file for ComfyUI. */
  readonly hasConfig?: boolean | undefined
  /** In tokens, if its configuration says it. */
  readonly contextLength?: number | undefined
  /** Weights and the files beside them; in layout `hf` all. */
  readonly files: readonly StandingFile[]
  /** In layout `ollama`: the documents, and the digests of the layers; undefined for what Ollama does not load. */
  readonly ollama?:
    | {
        readonly manifest: string
        readonly config: string
        readonly configDigest: Sha256Digest
        readonly layers: readonly Sha256Digest[]
      }
    | undefined
}

/** Bytes that a standing view shows, as a link to them or as a copy. */
export type ShownFile = Pick<StandingFile, 'path' | 'sizeBytes' | 'digest'>

/** What lies at a path of a standing view: the bytes of a file, a symbolic link within the view, or a small document. */
export type Entry = { readonly file: ShownFile } | { readonly link: string } | { readonly text: string }

/** An entry that a standing view should have. */
export interface WantedEntry {
  /** Below the view's folder. */
  readonly at: string
  readonly entry: Entry
  /** It names the others: made after them, and removed before. */
  readonly isLast?: boolean
  /** The folder with which it appears at once, if that is not there yet. */
  readonly group?: string
}
