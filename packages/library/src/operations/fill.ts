import type { ArtifactState } from '@svc/internal-state'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { Work } from './work.ts'

/** The outcome for companions. */
export interface Beside {
  /** The document that lists them. */
  readonly companions?: string
  /** Files that are neither in an artifact nor companions. */
  readonly omitted?: number
  readonly warnings?: readonly string[]
}

/** A fetch from the swarm: the store lacks every listed blob. */
export interface FillRequest {
  readonly manifestDigest: Sha256Digest
  readonly manifest: Manifest
  /** The absent files of the manifest, in manifest order and without duplicates. */
  readonly missing: readonly Sha256Digest[]
  /** Record, origin and hints of the artifact, if known. */
  readonly artifact: ArtifactState | undefined
}

export interface FillContext {
  readonly signal: AbortSignal
  /** Whether the owner agreed to evictions for it. */
  readonly mayEvict: boolean
  /** Reports the number of blobs and bytes stored by this fill so far; totals do not change. */
  readonly onProgress: (progress: {
    readonly filesDone: number
    readonly bytesDone: number
    /** Files in progress, for display. */
    readonly active?: readonly { readonly name: string; readonly bytesDone: number; readonly bytesTotal: number }[]
  }) => void
}

/**
 * Fetches missing blobs of a known artifact from the swarm. `@svc/sharing` has one.
 *
 * `fill` resolves when every missing blob is in the store, durable and verified. It throws a `LibraryError`:
 * `E_SOURCE_UNAVAILABLE` (no source, or none within the time-out), `E_NOT_IMPORTABLE` (bytes do not verify),
 * `E_NO_SPACE`. Verified bytes are kept for the next attempt.
 */
export interface Filler {
  /** Whether it knows where to ask. */
  canFill(artifact: ArtifactState | undefined): boolean

  fill(request: FillRequest, context: FillContext): Promise<void>

  /**
   * After {@link fill}: brings the companions that a pinned import was to bring.
   * @returns undefined if there were none to bring. @throws only the signal's reason
   */
  fillBeside(manifestDigest: Sha256Digest, context: Pick<Work, 'signal' | 'report'>): Promise<Beside | undefined>
}
