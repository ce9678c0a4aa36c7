import * as Type from 'typebox'
import { DigestSchema, TimestampSchema } from './fields.ts'
import { count, flag, listOf, named, text } from './schema.ts'

/** Why an artifact is withheld (spec add.37). */
export const WithheldSchema = named('Withheld', {
  fact: Type.Enum([
    'no-record',
    'damaged-record',
    'private',
    'restricted',
    'marked',
    'unproven',
    'unknown-access',
    'malformed',
    'unsigned'
  ]),
  reason: text('for people')
})

/** `GET /v1/why` (spec add.38). */
export const WhyResultSchema = named('WhyResult', {
  ref: Type.String(),
  manifestDigest: DigestSchema,
  record: Type.Enum(['present', 'absent', 'damaged']),
  source: Type.Optional(
    Type.Object({
      kind: text('`local`, `hf`, `catalog`, `oci` or `bt`'),
      repo: Type.Optional(Type.String()),
      revision: Type.Optional(Type.String())
    })
  ),
  importedAt: Type.Optional(TimestampSchema),
  access: Type.Optional(text('`own`, `public`, `restricted` or `unknown`')),
  by: Type.Optional(text('`hub-token`, `registry-login` or `webseed-key`')),
  confirmedPublicAt: Type.Optional(TimestampSchema),
  unproven: Type.Optional(Type.Array(text('a file'))),
  malformed: Type.Optional(Type.Array(text('a file that no runtime can load'))),
  marked: Type.Optional(flag('whoever exported it marked it as not for others')),
  decision: Type.Optional(
    Type.Object({
      is: text('`private` or `shared`: what the owner said'),
      at: Type.Optional(TimestampSchema)
    })
  ),
  copies: Type.Optional(
    Type.Array(
      Type.Object({
        kind: text('`hub`, `webseed` or `peer`'),
        where: Type.String(),
        at: TimestampSchema
      }),
      { description: 'where else its weights were seen, and when (additive)' }
    )
  ),
  companions: Type.Optional(
    Type.Object(
      {
        given: count('files that are shared with the artifact'),
        own: listOf(Type.String(), "the owner's own, which never leave this store")
      },
      { description: 'its companions; absent without any (additive)' }
    )
  ),
  doors: Type.Array(
    Type.Object({
      door: text('`swarm`, `webseed`, `hub-mirror`, `oci-mirror`, `s3-mirror`, `publish`, `export` or `push`'),
      open: flag('false: the configuration keeps it closed for all models'),
      given: Type.Boolean(),
      withheld: Type.Optional(WithheldSchema)
    })
  )
})
export type WhyResult = Type.Static<typeof WhyResultSchema>
