import * as Type from 'typebox'
import { ErrorBodySchema } from './error-envelope.ts'
import { BytesSchema, CountSchema, DigestSchema, InfohashSchema, TimestampSchema } from './fields.ts'
import { type OutdatedResult, OutdatedResultSchema } from './outdated.ts'

/** `waiting` for a lane, or `fetching`; `done` and `failed` are terminal and final (spec job.2). */
export const JobStateSchema = Type.Union(
  [Type.Literal('waiting'), Type.Literal('fetching'), Type.Literal('done'), Type.Literal('failed')],
  { title: 'JobState' }
)
/** A value of {@link JobStateSchema}. */
export type JobState = Type.Static<typeof JobStateSchema>

/** The route that started a job (spec job.4). */
export const JobKindSchema = Type.Union(
  [
    Type.Literal('ensure'),
    Type.Literal('import-local'),
    Type.Literal('import-hf'),
    Type.Literal('import-bt'),
    Type.Literal('import-catalog'),
    Type.Literal('import-oci'),
    Type.Literal('companions'),
    Type.Literal('verify'),
    Type.Literal('gc'),
    Type.Literal('evict'),
    Type.Literal('outdated')
  ],
  { title: 'JobKind' }
)
/** A value of {@link JobKindSchema}. */
export type JobKind = Type.Static<typeof JobKindSchema>

/** `result` of a finished import (spec job.7). */
export const ImportResultSchema = Type.Object(
  {
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
    skipped: CountSchema,
    notChosen: Type.Optional(
      Type.Integer({ minimum: 0, description: 'weights and aux files that the choice left out, where there was one' })
    ),
    before: Type.Optional(Type.String({ description: 'the tag that keeps what the name stood for before (additive)' })),
    fetchedBytes: Type.Optional({
      ...BytesSchema,
      description: 'bytes of files that came from the source in this run, unpacked (additive)'
    }),
    reusedBytes: Type.Optional({
      ...BytesSchema,
      description: 'bytes of files that were copied from older versions here; absent for none (additive)'
    }),
    companions: Type.Optional({
      ...DigestSchema,
      description: 'the document of the files beside the artifacts (additive)'
    }),
    omitted: Type.Optional(
      Type.Integer({ minimum: 0, description: 'files that are neither in an artifact nor beside it (additive)' })
    )
  },
  { title: 'ImportResult' }
)
/** A value of {@link ImportResultSchema}. */
export type ImportResult = Type.Static<typeof ImportResultSchema>

/** `result` of a finished garbage collection (spec add.13). */
export const GcResultSchema = Type.Object(
  {
    blobs: Type.Integer({ minimum: 0, description: 'removed, or with `dryRun` what would be' }),
    bytes: BytesSchema,
    unreadable: Type.Optional(
      Type.Integer({ minimum: 1, description: 'records that cannot be read: what they could name was kept (additive)' })
    ),
    tags: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'where `beforeOlderThanSeconds` was asked for: tags that went, or would go'
      })
    ),
    views: Type.Optional(
      Type.Integer({ minimum: 0, description: 'where `views` was asked for: managed views that went, or would go' })
    )
  },
  { title: 'GcResult' }
)
/** A value of {@link GcResultSchema}. */
export type GcResult = Type.Static<typeof GcResultSchema>

/** `result` of a finished eviction. */
export const EvictResultSchema = Type.Object(
  {
    blobs: Type.Integer({ minimum: 0, description: 'weights that were removed' }),
    bytes: BytesSchema,
    evicted: Type.Array(DigestSchema, { description: 'manifests' })
  },
  { title: 'EvictResult' }
)
/** A value of {@link EvictResultSchema}. */
export type EvictResult = Type.Static<typeof EvictResultSchema>

/**
 * The result of an import, a `gc`, an `evict` or an `outdated` job. The static type is that of an import with the members of the others added, so that importers need not check the kind of the job.
 */
const ResultSchema = Type.Unsafe<ImportResult & Partial<GcResult> & Partial<EvictResult> & Partial<OutdatedResult>>(
  Type.Union([ImportResultSchema, GcResultSchema, EvictResultSchema, OutdatedResultSchema])
)

/** `verify`: empty on success, the three lists on failure (spec job.9). */
export const VerifyReportSchema = Type.Object(
  {
    mismatched: Type.Optional(Type.Array(DigestSchema)),
    missing: Type.Optional(Type.Array(DigestSchema)),
    stateErrors: Type.Optional(Type.Array(Type.String()))
  },
  { title: 'VerifyReport' }
)
/** A value of {@link VerifyReportSchema}. */
export type VerifyReport = Type.Static<typeof VerifyReportSchema>

/** Limit of entries in a job's `files`. */
export const MAX_ACTIVE_FILES = 16

/** A file in progress, for display (additive). */
export const ActiveFileSchema = Type.Object(
  { name: Type.String(), bytesDone: BytesSchema, bytesTotal: BytesSchema },
  { title: 'ActiveFile' }
)
/** A value of {@link ActiveFileSchema}. */
export type ActiveFile = Type.Static<typeof ActiveFileSchema>

/** A job (spec job.4); the fields from `bytesDone` on are additive (spec job.13) and may be absent. */
export const JobSchema = Type.Object(
  {
    id: Type.String({ description: 'opaque hex' }),
    kind: JobKindSchema,
    ref: Type.String(),
    state: JobStateSchema,
    createdAt: TimestampSchema,
    manifest: Type.Optional(DigestSchema),
    as: Type.Optional(Type.String({ description: '`ns/name`, on imports' })),
    target: Type.Optional(Type.String({ description: 'on verify: the resolved digest, or `all`' })),
    dryRun: Type.Optional(Type.Boolean({ description: 'true on gc jobs that only count' })),
    filesDone: Type.Optional(CountSchema),
    filesTotal: Type.Optional(CountSchema),
    error: Type.Optional(ErrorBodySchema),
    result: Type.Optional(ResultSchema),
    verify: Type.Optional(VerifyReportSchema),
    bytesDone: Type.Optional(BytesSchema),
    bytesTotal: Type.Optional(BytesSchema),
    startedAt: Type.Optional(TimestampSchema),
    finishedAt: Type.Optional(TimestampSchema),
    message: Type.Optional(
      Type.String({ description: 'one line for people on what is going on, e.g. a wait for a rate limit' })
    ),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description: 'on imports at work: what the names give reason to, before the bytes are in; the result has all'
      })
    ),
    files: Type.Optional(Type.Array(ActiveFileSchema, { maxItems: MAX_ACTIVE_FILES, description: 'files in flight' })),
    peers: Type.Optional(Type.Integer({ minimum: 0, description: 'connected peers of the swarm' })),
    sources: Type.Optional(Type.Integer({ minimum: 0, description: 'webseeds and peers that give bytes' })),
    rateBytesPerSecond: Type.Optional(BytesSchema)
  },
  { title: 'Job' }
)
/** A value of {@link JobSchema}: a snapshot, which does not change as the job progresses. */
export type Job = Type.Static<typeof JobSchema>

/** Newest first (spec job.11). */
export const JobListSchema = Type.Object({ jobs: Type.Array(JobSchema) }, { title: 'JobList' })
/** A value of {@link JobListSchema}. */
export type JobList = Type.Static<typeof JobListSchema>
