import * as Type from 'typebox'
import { BytesSchema, CountSchema, DigestSchema } from './fields.ts'

const resolved = {
  ref: Type.String({ description: 'canonical, the selector as typed' }),
  ns: Type.String(),
  name: Type.String(),
  quant: Type.Optional(Type.String({ description: 'the member that was selected; absent for a reference by digest' })),
  manifestDigest: DigestSchema,
  indexDigest: Type.Optional(DigestSchema),
  plan: Type.Literal('pending', { description: 'a constant without meaning' }),
  planReason: Type.String({ description: 'a constant without meaning' })
}

/** The resolution of a reference (spec route.2). */
export const ResolveResultSchema = Type.Object(resolved, { title: 'ResolveResult' })
/** A value of {@link ResolveResultSchema}. */
export type ResolveResult = Type.Static<typeof ResolveResultSchema>

/** A blob that is present (spec route.5). It has the manifest's metadata if the manifest is present. */
export const OpenFileSchema = Type.Object(
  {
    digest: DigestSchema,
    path: Type.String({ description: 'absolute path of the blob' }),
    size: BytesSchema,
    name: Type.Optional(Type.String({ description: 'artifact-relative path' })),
    kind: Type.Optional(Type.String({ description: 'e.g. `config`, `weights.gguf`' })),
    role: Type.Optional(Type.String()),
    variant: Type.Optional(Type.String()),
    part: Type.Optional(CountSchema),
    runtime: Type.Optional(Type.String())
  },
  { title: 'OpenFile' }
)
/** A value of {@link OpenFileSchema}. */
export type OpenFile = Type.Static<typeof OpenFileSchema>

const companion = {
  path: Type.String({ description: 'as the source has it' }),
  digest: DigestSchema,
  size: BytesSchema,
  own: Type.Optional(Type.Boolean({ description: "true: the owner's own, which no road out takes (additive)" }))
}

/** A file of the source that lies beside the artifact's own (spec doc.21). */
export const CompanionFileSchema = Type.Object(
  { ...companion, blobPath: Type.String({ description: 'absolute path of the blob' }) },
  { title: 'CompanionFile' }
)
/** A value of {@link CompanionFileSchema}. */
export type CompanionFile = Type.Static<typeof CompanionFileSchema>

/** A file of the source that is not kept (spec doc.21). */
export const OmittedFileSchema = Type.Object(
  {
    path: Type.String(),
    size: BytesSchema,
    reason: Type.String({
      description:
        "`artifact`: a manifest has it; `large`: over 1 MiB; `many`: beyond 1,000 files or 64 MiB; `hidden`, `secret`, `unreadable`: on its owner's disk; `name`"
    }),
    own: Type.Optional(Type.Boolean({ description: 'true: no road out tells the name (additive)' }))
  },
  { title: 'OmittedFile' }
)
/** A value of {@link OmittedFileSchema}. */
export type OmittedFile = Type.Static<typeof OmittedFileSchema>

/** What lies beside an artifact's files at its source, as far as it is here (spec doc.21, add.48). */
export const OpenCompanionsSchema = Type.Object(
  {
    digest: { ...DigestSchema, description: 'of the document that lists them' },
    files: Type.Array(CompanionFileSchema),
    missing: Type.Optional(
      Type.Array(Type.Object(companion), { description: 'their bytes are lost; absent when none are (additive)' })
    ),
    omitted: Type.Array(OmittedFileSchema),
    warnings: Type.Optional(Type.Array(Type.String()))
  },
  { title: 'OpenCompanions' }
)
/** A value of {@link OpenCompanionsSchema}. */
export type OpenCompanions = Type.Static<typeof OpenCompanionsSchema>

/** The parts of an artifact that are present (spec route.5). */
export const OpenResultSchema = Type.Object(
  {
    ...resolved,
    files: Type.Array(OpenFileSchema, {
      description: 'the index blob, the manifest blob, then its files in order; those present'
    }),
    missing: Type.Optional(Type.Array(DigestSchema, { description: 'absent when nothing is missing' })),
    companions: Type.Optional(OpenCompanionsSchema)
  },
  { title: 'OpenResult' }
)
/** A value of {@link OpenResultSchema}. */
export type OpenResult = Type.Static<typeof OpenResultSchema>
