import type { Sha256Digest } from '@svc/ref'

/** What an import made. */
export interface Imported {
  readonly manifests: readonly Sha256Digest[]
  readonly indexDigest?: Sha256Digest
  readonly quants?: readonly string[]
  /** Artifacts that had a quant of this name before; absent when there were none. */
  readonly replaced?: readonly { readonly quant: string; readonly manifest: Sha256Digest }[]
  /** The tag of the artifact that the name had before. */
  readonly before?: string
  readonly warnings?: readonly string[]
  /** Files that were not recognized. */
  readonly skipped: number
  /** Weights and aux files that the choice left out, where there was one. */
  readonly notChosen?: number
  /** Of files that this run fetched from a remote source. */
  readonly fetchedBytes?: number
  /** Of files that were copied from older versions here; absent without any. */
  readonly reusedBytes?: number
  /** The document that lists the companions. */
  readonly companions?: Sha256Digest
  /** Files that are neither in an artifact nor companions. */
  readonly omitted?: number
}
