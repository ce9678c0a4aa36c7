import * as Type from 'typebox'
import { ImportHfBodySchema } from './bodies.ts'
import { BytesSchema, CountSchema, OriginSchema } from './fields.ts'

/**
 * What the hub says of the revision that an artifact follows: `same` for nothing of it changed · `newer` · `gone` for no
 * such repository, revision or quant any more · `gated` for a newer one that needs access · `pinned` for an import by its
 * commit · `elsewhere` for what is not from the hub · `unknown` when the hub gave no usable answer.
 */
const StatusSchema = Type.Union([
  Type.Literal('same'),
  Type.Literal('newer'),
  Type.Literal('gone'),
  Type.Literal('gated'),
  Type.Literal('pinned'),
  Type.Literal('elsewhere'),
  Type.Literal('unknown')
])

/** One model, compared with what it follows. */
export const OutdatedModelSchema = Type.Object(
  {
    ref: Type.String({ description: '`ns/name:quant`' }),
    status: StatusSchema,
    origin: Type.Optional(OriginSchema),
    commit: Type.Optional(Type.String({ description: 'what the revision points to now' })),
    movedTo: Type.Optional(Type.String({ description: "the repository's new name" })),
    files: Type.Optional({ ...CountSchema, description: 'on `newer`: of it, new or changed' }),
    bytes: Type.Optional({ ...BytesSchema, description: 'on `newer`: the bytes of these files' }),
    bytesPresent: Type.Optional({ ...BytesSchema, description: 'on `newer`: of these, bytes that the store has' }),
    reason: Type.Optional(Type.String({ description: 'on `gone`, `gated` and `unknown`, for people' })),
    upgrade: Type.Optional(ImportHfBodySchema)
  },
  { title: 'OutdatedModel' }
)
/** A value of {@link OutdatedModelSchema}; `upgrade` is the body of `POST /v1/import/hf` that brings the newer one. */
export type OutdatedModel = Type.Static<typeof OutdatedModelSchema>

/** `result` of a finished job `outdated` (additive), in the order of the inventory. */
export const OutdatedResultSchema = Type.Object(
  { models: Type.Array(OutdatedModelSchema) },
  { title: 'OutdatedResult' }
)
/** A value of {@link OutdatedResultSchema}. */
export type OutdatedResult = Type.Static<typeof OutdatedResultSchema>
