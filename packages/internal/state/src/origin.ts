import type { Sha256Digest } from '@svc/ref'

/** The kinds of sources of the import pipeline. */
export type SourceKind = 'local' | 'hf' | 'catalog' | 'oci'

/** Where to get bytes later; untrusted operational data, never part of a document (spec swarm.3). */
export interface SwarmHints {
  readonly trackers: readonly string[]
  readonly webseeds: readonly string[]
  readonly peers: readonly string[]
  /** Those of all three that the owner did not name: only public addresses are dialled on their word. */
  readonly others?: readonly string[]
}

export const NO_HINTS: SwarmHints = { trackers: [], webseeds: [], peers: [] }

/** The origin of an artifact, kept in `state/artifacts`. */
export interface ArtifactSource {
  readonly kind: SourceKind | 'bt'
  /** `org/name` in upstream spelling, for imports from hub and catalog. */
  readonly repo?: string
  /** The repository that was asked for, where the hub answered with another name. */
  readonly asked?: string
  readonly revision?: string
  /** The branch that the hub said to be at `revision`, and when (UTC, RFC 3339); unknown for an import by its commit alone. */
  readonly branch?: string
  readonly branchAt?: string
  /** The branch or tag that it follows under each name `ns/name` that its owner imported it as; empty for the commit alone. */
  readonly followed?: Readonly<Record<string, string>>
  /** A client of a mirror caused the import, and no import of the owner has had the artifact (spec add.41). */
  readonly onDemand?: boolean
  /** The document of the companions that this source itself brought (spec doc.21). */
  readonly companions?: Sha256Digest
  /** Upstream names, by the names in the manifest, for files where they differ (spec add.2). */
  readonly names?: Readonly<Record<string, string>>
  /** What a BitTorrent v1 swarm needs to seed after a restart; only that source reads and writes it. */
  readonly bittorrentV1?: Readonly<Record<string, unknown>>
}

/**
 * The origin after another import of the same artifact. The hub gives a commit's bytes again, unlike an archive or a
 * catalog. An import by commit keeps the branch that an earlier one knew, and a stranger's request does not make an
 * import of the owner a stranger's.
 */
export function mergedSource(before: ArtifactSource | undefined, now: ArtifactSource): ArtifactSource {
  if (before === undefined || now === before) return now
  const { onDemand, ...rest } = now.kind !== 'hf' && hubCommitOf(before) ? { ...before, onDemand: undefined } : now
  const isSame = rest.repo === before.repo && rest.revision === before.revision
  const older: Partial<ArtifactSource> = isSame ? before : {}
  const { branch, branchAt } = rest.branch === undefined ? older : rest
  const { asked = older.asked, companions = older.companions } = rest
  return {
    ...rest,
    ...(asked !== undefined && { asked }),
    ...(branch !== undefined && { branch }),
    ...(branchAt !== undefined && { branchAt }),
    ...(companions !== undefined && { companions }),
    ...(onDemand === true && before.onDemand === true && { onDemand })
  }
}

/** The owner's decision on one name does not change the others; nor does a client's fetch of the same bytes. */
export function mergedFollowed(
  before: ArtifactSource | undefined,
  now: ArtifactSource
): Pick<ArtifactSource, 'followed'> {
  const followed = { ...before?.followed, ...now.followed }
  return Object.keys(followed).length === 0 ? {} : { followed }
}

/** The name at the source of a file of the manifest (spec add.2). */
export const upstreamName = ({ names = {} }: Pick<ArtifactSource, 'names'>, name: string): string =>
  Object.hasOwn(names, name) ? names[name]! : name

/** A commit of the hub. No branch or tag has such a name. */
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision)

/** The repository and commit of an artifact from the hub; undefined for others, and for an unknown commit. */
export function hubCommitOf({ kind, repo, revision }: ArtifactSource) {
  return kind === 'hf' && repo !== undefined && revision !== undefined && isCommit(revision)
    ? { repo, revision }
    : undefined
}

/** Where a model is from, for people. */
export interface ShownOrigin {
  readonly kind: ArtifactSource['kind']
  /** `org/name`, as its source spells it. */
  readonly repo?: string
  /** The branch or tag that it follows; absent for one that was imported by its commit. */
  readonly revision?: string
  readonly commit?: string
}

/** The origin as the API shows it under a name `ns/name`. A model that was never imported under a name follows the default branch at most. */
export function shownOrigin({ kind, repo, revision, branch, followed }: ArtifactSource, name: string): ShownOrigin {
  const follows = followed === undefined ? branch : followed[name]
  return {
    kind,
    ...(repo !== undefined && { repo }),
    ...(kind === 'hf' && follows && { revision: follows }),
    ...(revision !== undefined && isCommit(revision) && { commit: revision })
  }
}
