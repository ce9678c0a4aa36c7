import * as Type from 'typebox'
import { DigestSchema } from './fields.ts'
import { bytes, flag, listOf, named, text } from './schema.ts'

/** Who keeps the bytes of an artifact from a garbage collection. */
const HolderSchema = Type.Object({
  kind: Type.Enum(['name', 'tag', 'pin', 'view', 'job', 'use']),
  what: Type.Optional(text('the name, the tag, the path of the view or the id of the job; absent for `pin` and `use`'))
})

/** What a removal removed (spec add.12). Blobs stay until a garbage collection. */
export const RemovedModelSchema = named('RemovedModel', {
  ref: text('`ns/name`, or `ns/name:quant`'),
  quants: Type.Array(
    Type.Object({
      quant: Type.String(),
      manifest: DigestSchema,
      needed: flag('true if another name, a tag, a pin or a view still needs it'),
      holders: Type.Optional(listOf(HolderSchema, 'who still needs it, or uses its files now; absent without any'))
    })
  ),
  tags: listOf(Type.String(), 'tags that were removed as well'),
  freeableBytes: bytes()
})
export type RemovedModel = Type.Static<typeof RemovedModelSchema>

/** `PUT /v1/private` */
export const PrivateResultSchema = named('PrivateResult', {
  ref: Type.String(),
  manifestDigest: DigestSchema,
  private: Type.Boolean()
})
export type PrivateResult = Type.Static<typeof PrivateResultSchema>

/** `PUT /v1/pin` */
export const PinResultSchema = named('PinResult', {
  ref: Type.String(),
  manifestDigest: DigestSchema,
  pinned: Type.Boolean()
})
export type PinResult = Type.Static<typeof PinResultSchema>
