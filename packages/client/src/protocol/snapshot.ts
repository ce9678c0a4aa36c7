import * as Type from 'typebox'
import { TimestampSchema } from './fields.ts'
import { bytes, count, named, text } from './schema.ts'

/** `POST /v1/snapshots` (additive): one complete state of the store, held for whoever copies it. */
export const SnapshotSchema = named('Snapshot', {
  id: Type.String(),
  storeId: text('the id of the store'),
  createdAt: TimestampSchema,
  path: text('a file of JSON lines: the state files of that moment, and the blobs that they need'),
  blobs: count(),
  bytes: bytes(),
  missingBlobs: count('blobs that the state names but that are not here: of unfinished models, or lost'),
  heldUntil: TimestampSchema
})
export type Snapshot = Type.Static<typeof SnapshotSchema>
