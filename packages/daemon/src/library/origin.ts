import type { Sha256Digest } from '@svc/ref'

/** The kinds of sources of the import pipeline. */
export type SourceKind = 'local' | 'hf' | 'catalog' | 'oci'

/** Where to get bytes later; untrusted operational data, never part of a document (spec swarm.3). */
export interface SwarmHints {
  readonly trackers: readonly string[]
  readonly webseeds: readonly string[]
  readonly peers: readonly string[]
}

/** The origin of an artifact, kept in `state/artifacts`. */
export interface ArtifactSource {
  readonly kind: SourceKind | 'bt'
  /** `org/name` in upstream spelling, for imports from hub and catalog. */
  readonly repo?: string
  readonly revision?: string
  /** The branch that the hub said to be at `revision`, and when (UTC, RFC 3339); unknown for an import by its commit alone. */
  readonly branch?: string
  readonly branchAt?: string
  /** A client of a mirror caused the import, and no import of the owner has had the artifact (spec add.41). */
  readonly onDemand?: boolean
  /** The document of the companions that this source itself brought (spec doc.21). */
  readonly companions?: Sha256Digest
  /** Upstream names, by the names in the manifest, for files where they differ (spec add.2). */
  readonly names?: Readonly<Record<string, string>>
  /**
   * The data that a BitTorrent v1 swarm needs to continue seeding after a restart; only that source reads and writes
   * it.
   */
  readonly bittorrentV1?: Readonly<Record<string, unknown>>
}

/**
 * The origin after another import of the same artifact. What an import by its commit alone does not know of a branch, an
 * earlier one may have known; and what an owner has imported is no stranger's because one asks for it again.
 */
export function mergedSource(before: ArtifactSource | undefined, now: ArtifactSource): ArtifactSource {
  if (before === undefined || now === before) return now
  const { onDemand, ...rest } = now
  const isSame = rest.repo === before.repo && rest.revision === before.revision
  const { branch, branchAt } = isSame && rest.branch === undefined ? before : rest
  const companions = rest.companions ?? (isSame ? before.companions : undefined)
  return {
    ...rest,
    ...(branch !== undefined && { branch }),
    ...(branchAt !== undefined && { branchAt }),
    ...(companions !== undefined && { companions }),
    ...(onDemand === true && before.onDemand === true && { onDemand })
  }
}
