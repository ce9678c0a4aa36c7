/** Kinds of sources that the import pipeline knows. */
export type SourceKind = 'local' | 'hf' | 'catalog' | 'oci'

/** Where bytes may come from later; operational data of strangers, never part of a document (spec swarm.3). */
export interface SwarmHints {
  readonly trackers: readonly string[]
  readonly webseeds: readonly string[]
  readonly peers: readonly string[]
}

/** Kept in `state/artifacts`: where an artifact came from. */
export interface ArtifactSource {
  readonly kind: SourceKind | 'bt'
  /** `org/name` in upstream spelling, on hub and catalog imports. */
  readonly repo?: string
  readonly revision?: string
  /** Files whose names upstream are others than in the manifest (spec add.2): upstream names by those of the manifest. */
  readonly names?: Readonly<Record<string, string>>
  /** What a BitTorrent v1 swarm needs to go on seeding after a restart; written and read by that source alone. */
  readonly bittorrentV1?: Readonly<Record<string, unknown>>
}
