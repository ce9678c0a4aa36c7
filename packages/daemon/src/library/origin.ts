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
  /** Upstream names, by the names in the manifest, for files where they differ (spec add.2). */
  readonly names?: Readonly<Record<string, string>>
  /**
   * The data that a BitTorrent v1 swarm needs to continue seeding after a restart; only that source reads and writes
   * it.
   */
  readonly bittorrentV1?: Readonly<Record<string, unknown>>
}
