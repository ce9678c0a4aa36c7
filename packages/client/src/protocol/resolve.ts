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

/** The parts of an artifact that are present (spec route.5). */
export const OpenResultSchema = Type.Object(
  {
    ...resolved,
    files: Type.Array(OpenFileSchema, {
      description: 'the index blob, the manifest blob, then its files in order; those present'
    }),
    missing: Type.Optional(Type.Array(DigestSchema, { description: 'absent when nothing is missing' }))
  },
  { title: 'OpenResult' }
)
/** A value of {@link OpenResultSchema}. */
export type OpenResult = Type.Static<typeof OpenResultSchema>
