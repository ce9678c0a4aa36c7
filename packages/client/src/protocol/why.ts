import * as Type from 'typebox'
import { DigestSchema, TimestampSchema } from './fields.ts'

/** Why an artifact is withheld (spec add.37). */
export const WithheldSchema = Type.Object(
  {
    fact: Type.Union([
      Type.Literal('no-record'),
      Type.Literal('damaged-record'),
      Type.Literal('private'),
      Type.Literal('restricted'),
      Type.Literal('marked'),
      Type.Literal('unproven'),
      Type.Literal('unknown-access')
    ]),
    reason: Type.String({ description: 'for people' })
  },
  { title: 'Withheld' }
)

/** `GET /v1/why` (spec add.38). */
export const WhyResultSchema = Type.Object(
  {
    ref: Type.String(),
    manifestDigest: DigestSchema,
    record: Type.Union([Type.Literal('present'), Type.Literal('absent'), Type.Literal('damaged')]),
    source: Type.Optional(
      Type.Object({
        kind: Type.String({ description: '`local`, `hf`, `catalog`, `oci` or `bt`' }),
        repo: Type.Optional(Type.String()),
        revision: Type.Optional(Type.String())
      })
    ),
    importedAt: Type.Optional(TimestampSchema),
    access: Type.Optional(Type.String({ description: '`own`, `public`, `restricted` or `unknown`' })),
    by: Type.Optional(Type.String({ description: '`hub-token`, `registry-login` or `webseed-key`' })),
    confirmedPublicAt: Type.Optional(TimestampSchema),
    unproven: Type.Optional(Type.Array(Type.String({ description: 'a file' }))),
    marked: Type.Optional(Type.Boolean({ description: 'whoever exported it marked it as not for others' })),
    decision: Type.Optional(
      Type.Object({
        is: Type.String({ description: '`private` or `shared`: what the owner said' }),
        at: Type.Optional(TimestampSchema)
      })
    ),
    copies: Type.Optional(
      Type.Array(
        Type.Object({
          kind: Type.String({ description: '`hub`, `webseed` or `peer`' }),
          where: Type.String(),
          at: TimestampSchema
        }),
        { description: 'where its weights were seen beside this store, and when (additive)' }
      )
    ),
    companions: Type.Optional(
      Type.Object(
        {
          given: Type.Integer({ minimum: 0, description: 'files that leave with the artifact' }),
          own: Type.Array(Type.String(), { description: "the owner's own, which no road out takes" })
        },
        { description: 'the files beside it; absent without any (additive)' }
      )
    ),
    doors: Type.Array(
      Type.Object({
        door: Type.String({
          description: '`swarm`, `webseed`, `hub-mirror`, `oci-mirror`, `s3-mirror`, `publish`, `export` or `push`'
        }),
        open: Type.Boolean({ description: 'false: the configuration keeps it closed for all models' }),
        given: Type.Boolean(),
        withheld: Type.Optional(WithheldSchema)
      })
    )
  },
  { title: 'WhyResult' }
)
/** A value of {@link WhyResultSchema}. */
export type WhyResult = Type.Static<typeof WhyResultSchema>
