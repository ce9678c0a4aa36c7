import * as Type from 'typebox'
import { BytesSchema, CountSchema, TimestampSchema } from './fields.ts'
import { PATHS } from './paths.ts'

/** `POST /v1/snapshots` (additive): one complete state of the store, held for whoever copies it. */
export const SnapshotSchema = Type.Object(
  {
    id: Type.String(),
    storeId: Type.String({ description: 'the id of the store' }),
    createdAt: TimestampSchema,
    path: Type.String({
      description: 'a file of JSON lines: the state files of that moment, and the blobs that they need'
    }),
    blobs: CountSchema,
    bytes: BytesSchema,
    missingBlobs: Type.Integer({
      minimum: 0,
      description: 'blobs that the state names and that are not here: of unfinished models, or lost'
    }),
    heldUntil: TimestampSchema
  },
  { title: 'Snapshot' }
)
/** A value of {@link SnapshotSchema}. */
export type Snapshot = Type.Static<typeof SnapshotSchema>

/** The part of `ROUTES` for snapshots (spec add.43). */
export const SNAPSHOT_ROUTES = {
  makeSnapshot: {
    ...PATHS.makeSnapshot,
    summary: 'A complete state of the store, held for a backup',
    additive: true,
    body: Type.Object({}),
    status: 201,
    response: SnapshotSchema,
    errors: { E_BAD_REQUEST: 400, E_RATE_LIMITED: 503 }
  },
  holdSnapshot: {
    ...PATHS.holdSnapshot,
    summary: 'Hold a snapshot for longer',
    additive: true,
    params: Type.Object({ id: Type.String() }),
    status: 200,
    response: SnapshotSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  releaseSnapshot: {
    ...PATHS.releaseSnapshot,
    summary: 'Let a snapshot go',
    additive: true,
    params: Type.Object({ id: Type.String() }),
    status: 200,
    response: SnapshotSchema,
    errors: { E_NOT_FOUND: 404 }
  }
} as const
