import * as Type from 'typebox'
import { ErrorBodySchema } from './error-envelope.ts'
import { DigestSchema, InfohashSchema, TimestampSchema } from './fields.ts'
import { type OutdatedResult, OutdatedResultSchema } from './outdated.ts'
import { bytes, count, digest, flag, listOf, named, text } from './schema.ts'

/** `waiting` for a lane, or `fetching`; `done` and `failed` are terminal and final (spec job.2). */
export const JobStateSchema = Type.Enum(['waiting', 'fetching', 'done', 'failed'], { title: 'JobState' })
export type JobState = Type.Static<typeof JobStateSchema>

/** The route that started a job (spec job.4). */
export const JobKindSchema = Type.Enum(
  [
    'ensure',
    'import-local',
    'import-hf',
    'import-bt',
    'import-catalog',
    'import-oci',
    'companions',
    'verify',
    'gc',
    'evict',
    'outdated'
  ],
  { title: 'JobKind' }
)
export type JobKind = Type.Static<typeof JobKindSchema>

/** `result` of a finished import (spec job.7). */
export const ImportResultSchema = named('ImportResult', {
  manifests: Type.Array(DigestSchema),
  indexDigest: Type.Optional(DigestSchema),
  quants: Type.Optional(Type.Array(Type.String())),
  infohash: Type.Optional(InfohashSchema),
  warnings: Type.Optional(Type.Array(Type.String())),
  replaced: Type.Optional(
    Type.Array(Type.Object({ quant: Type.String(), manifest: DigestSchema }), {
      description: 'artifacts that had a quant of this name before; absent when there were none'
    })
  ),
  skipped: count(),
  notChosen: Type.Optional(count('weights and aux files that the choice left out, where there was one')),
  before: Type.Optional(text('the tag of the artifact that the name had before (additive)')),
  fetchedBytes: Type.Optional(bytes('unpacked bytes of files that this run fetched from the source (additive)')),
  reusedBytes: Type.Optional(
    bytes('bytes of files that were copied from older versions here; absent without any (additive)')
  ),
  companions: Type.Optional(digest('the document that lists the companions (additive)')),
  omitted: Type.Optional(count('files that are neither in an artifact nor companions (additive)'))
})
export type ImportResult = Type.Static<typeof ImportResultSchema>

/** `result` of a finished garbage collection (spec add.13). */
export const GcResultSchema = named('GcResult', {
  blobs: count('removed; with `dryRun`, that would be removed'),
  bytes: bytes(),
  unreadable: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'records that cannot be read; everything that they could name was kept (additive)'
    })
  ),
  tags: Type.Optional(count('with `beforeOlderThanSeconds`: tags that were removed, or would be')),
  views: Type.Optional(count('with `views`: managed views that were removed, or would be')),
  leftovers: Type.Optional(count('with `leftovers`: files of unfinished downloads and corrupt blobs')),
  leftoverBytes: Type.Optional(bytes('of these, not in `bytes`'))
})
export type GcResult = Type.Static<typeof GcResultSchema>

/** `result` of a finished eviction. */
export const EvictResultSchema = named('EvictResult', {
  blobs: count('weights that were removed'),
  bytes: bytes(),
  evicted: listOf(DigestSchema, 'manifests')
})
export type EvictResult = Type.Static<typeof EvictResultSchema>

/**
 * The result of an import, a `gc`, an `evict` or an `outdated` job. The static type is that of an import with the members of the others added, so that importers need not check the kind of the job.
 */
const ResultSchema = Type.Unsafe<ImportResult & Partial<GcResult> & Partial<EvictResult> & Partial<OutdatedResult>>(
  Type.Union([ImportResultSchema, GcResultSchema, EvictResultSchema, OutdatedResultSchema])
)

/** `verify`: empty on success, the three lists on failure (spec job.9). */
export const VerifyReportSchema = named('VerifyReport', {
  mismatched: Type.Optional(Type.Array(DigestSchema)),
  missing: Type.Optional(Type.Array(DigestSchema)),
  stateErrors: Type.Optional(Type.Array(Type.String()))
})
export type VerifyReport = Type.Static<typeof VerifyReportSchema>

/** Limit of entries in a job's `files`. */
export const MAX_ACTIVE_FILES = 16

/** A file in progress, for display (additive). */
export const ActiveFileSchema = named('ActiveFile', { name: Type.String(), bytesDone: bytes(), bytesTotal: bytes() })
export type ActiveFile = Type.Static<typeof ActiveFileSchema>

/** A job (spec job.4); the fields from `bytesDone` on are additive (spec job.13) and may be absent. */
export const JobSchema = named('Job', {
  id: text('opaque hex'),
  kind: JobKindSchema,
  ref: Type.String(),
  state: JobStateSchema,
  createdAt: TimestampSchema,
  manifest: Type.Optional(DigestSchema),
  as: Type.Optional(text('`ns/name`, on imports')),
  target: Type.Optional(text('on verify: the resolved digest, or `all`')),
  dryRun: Type.Optional(flag('true on gc jobs that only count')),
  interrupted: Type.Optional(
    flag('true on an import that an earlier daemon left unfinished: `PUT /v1/jobs/{id}` goes on (additive)')
  ),
  filesDone: Type.Optional(count()),
  filesTotal: Type.Optional(count()),
  error: Type.Optional(ErrorBodySchema),
  result: Type.Optional(ResultSchema),
  verify: Type.Optional(VerifyReportSchema),
  bytesDone: Type.Optional(bytes()),
  bytesTotal: Type.Optional(bytes()),
  startedAt: Type.Optional(TimestampSchema),
  finishedAt: Type.Optional(TimestampSchema),
  message: Type.Optional(text('one line for people on what is happening, e.g. a wait for a rate limit')),
  warnings: Type.Optional(
    listOf(Type.String(), 'on running imports: warnings that names alone cause; the result has all')
  ),
  files: Type.Optional(Type.Array(ActiveFileSchema, { maxItems: MAX_ACTIVE_FILES, description: 'files in flight' })),
  peers: Type.Optional(count('connected peers of the swarm')),
  sources: Type.Optional(count('webseeds and peers that send bytes')),
  rateBytesPerSecond: Type.Optional(bytes())
})
/** A value of {@link JobSchema}: a snapshot, which does not change as the job progresses. */
export type Job = Type.Static<typeof JobSchema>

/** Newest first (spec job.11). */
export const JobListSchema = named('JobList', {
  jobs: Type.Array(JobSchema),
  interrupted: Type.Optional(
    listOf(JobSchema, 'imports that an earlier daemon left unfinished, newest first; absent without any (additive)')
  )
})
export type JobList = Type.Static<typeof JobListSchema>
