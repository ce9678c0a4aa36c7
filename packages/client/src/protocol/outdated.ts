import * as Type from 'typebox'
import { ImportHfBodySchema } from './bodies.ts'
import { OriginSchema } from './fields.ts'
import { bytes, count, named, text } from './schema.ts'

/**
 * What the hub says of the revision that an artifact follows. `gone`: no such repository, revision or quant any more ·
 * `gated`: a newer one needs access · `pinned`: imported by its commit · `elsewhere`: not from the hub · `unknown`: no
 * usable answer.
 */
const StatusSchema = Type.Enum(['same', 'newer', 'gone', 'gated', 'pinned', 'elsewhere', 'unknown'])

/** One model, compared with what it follows. */
export const OutdatedModelSchema = named('OutdatedModel', {
  ref: text('`ns/name:quant`'),
  status: StatusSchema,
  origin: Type.Optional(OriginSchema),
  commit: Type.Optional(text('what the revision points to now')),
  movedTo: Type.Optional(text("the repository's new name")),
  files: Type.Optional(count('on `newer`: its new or changed files')),
  bytes: Type.Optional(bytes('on `newer`: the bytes of these files')),
  bytesPresent: Type.Optional(bytes('on `newer`: of these, bytes that the store has')),
  reason: Type.Optional(text('on `gone`, `gated` and `unknown`, for people')),
  upgrade: Type.Optional(ImportHfBodySchema)
})
/** A value of {@link OutdatedModelSchema}; `upgrade` is the body of `POST /v1/import/hf` that brings the newer one. */
export type OutdatedModel = Type.Static<typeof OutdatedModelSchema>

/** `result` of a finished job `outdated` (additive), in the order of the inventory. */
export const OutdatedResultSchema = named('OutdatedResult', { models: Type.Array(OutdatedModelSchema) })
export type OutdatedResult = Type.Static<typeof OutdatedResultSchema>
