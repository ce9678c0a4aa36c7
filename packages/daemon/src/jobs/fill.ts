import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactState } from '../library/artifacts.ts'

/** What is to be brought in from the swarm: every listed blob is absent from the store. */
export interface FillRequest {
  readonly manifestDigest: Sha256Digest
  readonly manifest: Manifest
  /** The files of the manifest that are absent, in manifest order, each digest once. */
  readonly missing: readonly Sha256Digest[]
  /** Record, origin and hints of the artifact where they are known. */
  readonly artifact: ArtifactState | undefined
}

export interface FillContext {
  readonly signal: AbortSignal
  /** Count of blobs and bytes that this fill has put into the store so far; totals do not change. */
  readonly onProgress: (progress: {
    readonly filesDone: number
    readonly bytesDone: number
    /** Files in flight, for display. */
    readonly active?: readonly { readonly name: string; readonly bytesDone: number; readonly bytesTotal: number }[]
  }) => void
}

/**
 * Brings missing blobs of a known artifact in from the swarm. Implemented by the daemon's swarm client.
 *
 * `fill` resolves when every missing blob is in the store, durable and verified. It throws a `DaemonError`:
 * `E_SOURCE_UNAVAILABLE` (no source, or none within the time-out), `E_NOT_IMPORTABLE` (bytes do not verify),
 * `E_NO_SPACE`. What was verified is kept for the next try.
 */
export interface Filler {
  fill(request: FillRequest, context: FillContext): Promise<void>
}
