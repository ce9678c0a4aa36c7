import * as Type from 'typebox'
import { BytesSchema, DigestSchema } from './fields.ts'

/** Who keeps the bytes of an artifact from a garbage collection. */
const HolderSchema = Type.Object({
  kind: Type.Union([
    Type.Literal('name'),
    Type.Literal('tag'),
    Type.Literal('pin'),
    Type.Literal('view'),
    Type.Literal('job'),
    Type.Literal('use')
  ]),
  what: Type.Optional(
    Type.String({
      description: 'the name, the tag, the path of the view or the id of the job; absent for `pin` and `use`'
    })
  )
})

/** What a removal removed (spec add.12). Blobs stay until a garbage collection. */
export const RemovedModelSchema = Type.Object(
  {
    ref: Type.String({ description: '`ns/name`, or `ns/name:quant`' }),
    quants: Type.Array(
      Type.Object({
        quant: Type.String(),
        manifest: DigestSchema,
        needed: Type.Boolean({ description: 'true where another name, a tag, a pin or a view still needs it' }),
        holders: Type.Optional(
          Type.Array(HolderSchema, { description: 'who still needs it, or uses its files now; absent without any' })
        )
      })
    ),
    tags: Type.Array(Type.String(), { description: 'tags that were taken away as well' }),
    freeableBytes: BytesSchema
  },
  { title: 'RemovedModel' }
)
/** A value of {@link RemovedModelSchema}. */
export type RemovedModel = Type.Static<typeof RemovedModelSchema>

/** `PUT /v1/private` */
export const PrivateResultSchema = Type.Object(
  { ref: Type.String(), manifestDigest: DigestSchema, private: Type.Boolean() },
  { title: 'PrivateResult' }
)
/** A value of {@link PrivateResultSchema}. */
export type PrivateResult = Type.Static<typeof PrivateResultSchema>

/** `PUT /v1/pin` */
export const PinResultSchema = Type.Object(
  { ref: Type.String(), manifestDigest: DigestSchema, pinned: Type.Boolean() },
  { title: 'PinResult' }
)
/** A value of {@link PinResultSchema}. */
export type PinResult = Type.Static<typeof PinResultSchema>
