import type { OwnersChoice } from '@svc/classify'
import { isObject } from '@svc/internal-http/json'
import { tryParseInfohash } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import { strangersHints, usableHints } from './hints.ts'
import type { ArtifactSource, SwarmHints } from './origin.ts'
import { OWNERS_CHOICE } from './owners-choice.ts'
import { PROVENANCE, type Provenance } from './provenance.ts'
import { amendedRecord, type RecordKind } from './record.ts'
import {
  anything,
  bool,
  digest,
  type FieldRule,
  listOf,
  mapOf,
  objectOf,
  oneOf,
  optional,
  text,
  yes
} from './strict.ts'

/** What the daemon knows about one artifact beyond its documents (spec disk.12, swarm.3). */
export interface ArtifactState {
  readonly manifestDigest: Sha256Digest
  /** The distribution record; absent for artifacts that came from a swarm by their pin. */
  readonly record?: Sha256Digest
  readonly source: ArtifactSource
  /** Who may have its bytes; only `verdictOf` reads it to decide (spec add.37). */
  readonly provenance: Provenance
  /** Imported by its pin and without a name: needed although no index names it (spec add.13). */
  readonly pinned: boolean
  readonly hints: SwarmHints
  /** Its owner said that its bytes stay: neither a quota nor an eviction takes them. */
  readonly kept?: true
  /** Its weights were or are being evicted: missing ones are no damage, and present ones are not needed. */
  readonly away?: true
  /** Where its weights were seen beside this store, the newest of each place. */
  readonly copies?: readonly ProvenCopy[]
  /** UTC, RFC 3339: when the latest import ended. Absent where none was recorded. */
  readonly importedAt?: string
  /** UTC, RFC 3339: when it began. */
  readonly beganAt?: string
  /** A pinned import whose blobs were never complete: missing ones are no damage. */
  readonly incomplete?: true
  /** The name, `ns/name`, that a pinned import will give it; absent once it has that name, or the import was cancelled. */
  readonly futureName?: string
  /** The companions that a pinned import will bring, until they are here or the import was cancelled. */
  readonly futureCompanions?: FutureCompanions
  /** The companions that imports brought (spec doc.21), by the name `ns/name` that each gave the artifact. */
  readonly companions?: Readonly<Record<string, Sha256Digest>>
  /** What its owner chose at the latest import under each name `ns/name`; absent for everything. */
  readonly choices?: Readonly<Record<string, OwnersChoice>>
}

/** A place that showed that it has all of an artifact's weights. */
export interface ProvenCopy {
  readonly kind: 'hub' | 'webseed' | 'peer'
  /** `Org/Model@<commit>`, an address, or `host:port`. */
  readonly where: string
  /** UTC, RFC 3339. */
  readonly at: string
}

interface FutureCompanions {
  readonly digest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  /** `ns/name`; empty for a pinned import without a name. */
  readonly name: string
}

/** What is recorded: the digest is in the file's name. */
export type RecordedState = Omit<ArtifactState, 'manifestDigest'>

const infohash: FieldRule = (value, what) =>
  typeof value === 'string' && tryParseInfohash(value) !== undefined ? undefined : `${what} is not an infohash`

const SOURCE = objectOf<ArtifactSource>({
  kind: oneOf('local', 'hf', 'catalog', 'oci', 'bt'),
  repo: optional(text),
  asked: optional(text),
  revision: optional(text),
  branch: optional(text),
  branchAt: optional(text),
  followed: optional(mapOf(text)),
  onDemand: yes,
  companions: optional(digest),
  names: optional(mapOf(text)),
  bittorrentV1: optional(mapOf(anything))
})

const HINTS = objectOf<SwarmHints>({
  trackers: listOf(text),
  webseeds: listOf(text),
  peers: listOf(text),
  others: optional(listOf(text))
})

export const ARTIFACT_RECORD: RecordKind<RecordedState> = {
  folder: 'artifacts',
  shape: {
    record: optional(digest),
    source: SOURCE,
    provenance: PROVENANCE,
    pinned: bool,
    hints: HINTS,
    importedAt: optional(text),
    beganAt: optional(text),
    incomplete: yes,
    futureName: optional(text),
    futureCompanions: optional(objectOf<FutureCompanions>({ digest, infohash, name: text })),
    companions: optional(mapOf(digest)),
    choices: optional(mapOf(OWNERS_CHOICE)),
    kept: yes,
    away: yes,
    copies: optional(listOf(objectOf<ProvenCopy>({ kind: oneOf('hub', 'webseed', 'peer'), where: text, at: text })))
  },
  decode: ({ hints, ...state }) => ({ ...state, hints: usableHints(hints) }),
  encode: (state) => state
}

/**
 * A state file of a backup, as it is restored: what it says of addresses is not the owner's word, whatever it claims. Records
 * that name none, and bytes that are no record, stay as they are.
 */
export function restoredRecord(bytes: Uint8Array): Uint8Array {
  return amendedRecord(bytes, ({ hints, source, choices: _, ...fields }) => ({
    ...fields,
    ...(source !== undefined && { source: withStrangersTrackers(source) }),
    ...(hints !== undefined && { hints: HINTS(hints, '') === undefined ? strangersHints(hints as SwarmHints) : hints })
  }))
}

function withStrangersTrackers(source: unknown): unknown {
  if (!isObject(source) || !isObject(source.bittorrentV1)) return source
  return { ...source, bittorrentV1: { ...source.bittorrentV1, isFromOthers: true } }
}

/** When its files last changed, for clients of a mirror. The same during an import and after it, so that they do not copy it again. */
export const modifiedAt = ({ beganAt, importedAt }: ArtifactState): string | undefined => beganAt ?? importedAt

/**
 * The companions under a name `ns/name`. Without a name, or where its imports brought none, those of the artifact's
 * source: other imports may have brought others.
 */
export function companionsUnder(
  state: Pick<ArtifactState, 'companions' | 'source'> | undefined,
  name?: string
): Sha256Digest | undefined {
  const { companions = {}, source } = state ?? {}
  if (name !== undefined && Object.hasOwn(companions, name)) return companions[name]
  return source?.companions ?? Object.values(companions)[0]
}

/**
 * The owner's choice under a name `ns/name`, or else under another: it is the same artifact, with the same files. Nothing
 * if everything was chosen.
 */
export function choiceUnder(
  { choices = {} }: Pick<ArtifactState, 'choices'>,
  name?: string
): { readonly choice?: OwnersChoice } {
  const choice = (name !== undefined && choices[name]) || Object.values(choices)[0]
  return choice === undefined ? {} : { choice }
}
