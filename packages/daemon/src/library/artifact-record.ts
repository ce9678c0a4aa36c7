import { tryParseInfohash } from '@svc/metainfo'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { usableHints } from './hints.ts'
import type { ArtifactSource, SwarmHints } from './origin.ts'
import { type Provenance, parseProvenanceOf } from './provenance.ts'
import { isFirstFormat, parseStateRecord, type RecordKind } from './record.ts'
import {
  CorruptStateError,
  digestField,
  type Fields,
  fieldsOf,
  onlyKeys,
  optionalFields,
  stringsField
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
  /** Its weights were evicted, or are about to be: missing ones are no damage, and what is here of them is not needed. */
  readonly away?: true
  /** Where its weights were seen beside this store, the newest of each place. */
  readonly copies?: readonly ProvenCopy[]
  /** UTC, RFC 3339, of the latest import; absent for artifacts of earlier versions. */
  readonly importedAt?: string
  /** A pinned import whose blobs were never complete: missing ones are no damage. */
  readonly incomplete?: true
  /** The name, `ns/name`, that a pinned import is to give it; absent when it has that name, or nobody wants it to. */
  readonly futureName?: string
  /** The companions that a pinned import is to bring, until they are here or nobody wants the name. */
  readonly futureCompanions?: FutureCompanions
  /** The companions that imports brought (spec doc.21), by the name `ns/name` that each gave the artifact. */
  readonly companions?: Readonly<Record<string, Sha256Digest>>
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

const KINDS: readonly string[] = ['local', 'hf', 'catalog', 'oci', 'bt'] satisfies ArtifactSource['kind'][]

export const ARTIFACT_RECORD: RecordKind<RecordedState> = {
  folder: 'artifacts',
  keys: [
    'record',
    'source',
    'pinned',
    'hints',
    'importedAt',
    'incomplete',
    'futureName',
    'provenance',
    'companions',
    'futureCompanions',
    'kept',
    'away',
    'copies',
    // before the provenance
    'restricted',
    'private'
  ],
  // an older version would call what is away damaged, and leave it away when it is back
  readers: ({ away }) => (away === true ? 4 : 2),
  parse: artifactStateOf,
  format: ({ record, source, provenance, pinned, hints, importedAt, incomplete, futureName, ...beside }) => ({
    record,
    source,
    provenance,
    pinned,
    hints,
    importedAt,
    incomplete,
    futureName,
    companions: beside.companions,
    futureCompanions: beside.futureCompanions,
    kept: beside.kept,
    away: beside.away,
    copies: beside.copies
  })
}

const FILE = /^state\/artifacts\/([0-9a-f]{64})\.json$/

/** The artifact whose record a file is, relative to the root. */
export function artifactOf(file: string): Sha256Digest | undefined {
  const hex = FILE.exec(file)?.[1]
  return hex === undefined ? undefined : digestFromHex(hex)
}

/** @throws CorruptStateError, NewerStateError */
export const parseArtifactState = (bytes: Uint8Array, manifestDigest: Sha256Digest, file: string): ArtifactState => ({
  manifestDigest,
  ...parseStateRecord(bytes, file, ARTIFACT_RECORD)
})

function sourceOf(fields: Fields, file: string): ArtifactSource {
  const { foreign, ...rest } = fieldsOf(fields.source, file, '"source"')
  // Earlier versions called this field `foreign`.
  const source = { ...(foreign !== undefined && { bittorrentV1: foreign }), ...rest } as Record<string, unknown>
  if (isFirstFormat(fields)) onlyKeys(source, ['kind', 'repo', 'revision', 'names', 'bittorrentV1'], file)
  if (!KINDS.includes(source.kind as string)) throw new CorruptStateError(file, '"source.kind" is unknown')
  optionalFields(source, ['repo', 'revision', 'branch', 'branchAt'], 'a string', file, 'source.')
  optionalFields(source, ['onDemand'], 'true', file, 'source.')
  if (source.companions !== undefined) digestField(source.companions, file, '"source.companions"')
  if (source.bittorrentV1 !== undefined) fieldsOf(source.bittorrentV1, file, '"source.bittorrentV1"')
  for (const key of ['names', 'followed']) {
    const texts = source[key] === undefined ? [] : Object.values(fieldsOf(source[key], file, `"source.${key}"`))
    if (!texts.every((text) => typeof text === 'string'))
      throw new CorruptStateError(file, `"source.${key}" is not all strings`)
  }
  return source as unknown as ArtifactSource
}

function artifactStateOf(fields: Fields, file: string): RecordedState {
  const source = sourceOf(fields, file)
  optionalFields(fields, FLAGS, 'true', file)
  optionalFields(fields, ['pinned'], 'a boolean', file)
  optionalFields(fields, ['importedAt', 'futureName'], 'a string', file)
  const hints = fieldsOf(fields.hints, file, '"hints"')
  if (isFirstFormat(fields)) onlyKeys(hints, ['trackers', 'webseeds', 'peers'], file)
  return {
    ...(fields.record !== undefined && { record: digestField(fields.record, file, '"record"') }),
    source,
    provenance: parseProvenanceOf(fields, source, file),
    // before this field existed, everything from a swarm was kept by its pin
    pinned: fields.pinned === undefined ? source.kind === 'bt' : fields.pinned === true,
    ...(fields.importedAt !== undefined && { importedAt: fields.importedAt as string }),
    ...flagsOf(fields),
    ...(fields.futureName !== undefined && { futureName: fields.futureName as string }),
    ...besideFields(fields, file),
    hints: usableHints({
      trackers: stringsField(hints.trackers, file, '"hints.trackers"'),
      webseeds: stringsField(hints.webseeds, file, '"hints.webseeds"'),
      peers: stringsField(hints.peers, file, '"hints.peers"')
    })
  }
}

const FLAGS = ['incomplete', 'kept', 'away'] as const

const flagsOf = (fields: Fields): Pick<RecordedState, 'incomplete' | 'kept' | 'away'> =>
  Object.fromEntries(FLAGS.filter((key) => fields[key] === true).map((key) => [key, true]))

const besideFields = (
  { companions, futureCompanions, copies }: Fields,
  file: string
): Pick<RecordedState, 'companions' | 'futureCompanions' | 'copies'> => ({
  ...(copies !== undefined && { copies: copiesField(copies, file) }),
  ...(companions !== undefined && { companions: companionsField(companions, file) }),
  ...(futureCompanions !== undefined && { futureCompanions: futureCompanionsField(futureCompanions, file) })
})

function futureCompanionsField(value: unknown, file: string): FutureCompanions {
  const { digest, infohash, name } = fieldsOf(value, file, '"futureCompanions"')
  if (typeof infohash !== 'string' || tryParseInfohash(infohash) === undefined)
    throw new CorruptStateError(file, '"futureCompanions.infohash" is not an infohash')
  if (typeof name !== 'string') throw new CorruptStateError(file, '"futureCompanions.name" is not a string')
  return { digest: digestField(digest, file, '"futureCompanions.digest"'), infohash, name }
}

const COPY_KINDS: readonly unknown[] = ['hub', 'webseed', 'peer'] satisfies ProvenCopy['kind'][]

function copiesField(value: unknown, file: string): readonly ProvenCopy[] {
  if (!Array.isArray(value)) throw new CorruptStateError(file, '"copies" is not a list')
  return value.map((each) => {
    const { kind, where, at } = fieldsOf(each, file, 'of "copies"')
    if (!COPY_KINDS.includes(kind) || typeof where !== 'string' || typeof at !== 'string')
      throw new CorruptStateError(file, 'an entry of "copies" is malformed')
    return { kind: kind as ProvenCopy['kind'], where, at }
  })
}

function companionsField(value: unknown, file: string): Readonly<Record<string, Sha256Digest>> {
  const byName = Object.entries(fieldsOf(value, file, '"companions"'))
  return Object.fromEntries(byName.map(([name, digest]) => [name, digestField(digest, file, `"companions.${name}"`)]))
}

/**
 * The companions under a name `ns/name`. Where that brought none, or no name is asked for, those of the artifact's source: what other
 * imports brought is not the source's.
 */
export function companionsUnder(
  state: Pick<ArtifactState, 'companions' | 'source'> | undefined,
  name?: string
): Sha256Digest | undefined {
  const { companions = {}, source } = state ?? {}
  if (name !== undefined && Object.hasOwn(companions, name)) return companions[name]
  return source?.companions ?? Object.values(companions)[0]
}
