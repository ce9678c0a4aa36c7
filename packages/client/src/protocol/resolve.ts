import * as Type from 'typebox'
import { DigestSchema } from './fields.ts'
import { bytes, count, digest, flag, listOf, named, text } from './schema.ts'

const resolved = {
  ref: text('canonical, the selector as typed'),
  ns: Type.String(),
  name: Type.String(),
  quant: Type.Optional(text('the member that was selected; absent for a reference by digest')),
  manifestDigest: DigestSchema,
  indexDigest: Type.Optional(DigestSchema),
  plan: Type.Literal('pending', { description: 'a constant without meaning' }),
  planReason: text('a constant without meaning')
}

/** The resolution of a reference (spec route.2). */
export const ResolveResultSchema = named('ResolveResult', resolved)
export type ResolveResult = Type.Static<typeof ResolveResultSchema>

/** A blob that is present (spec route.5). It has the manifest's metadata if the manifest is present. */
export const OpenFileSchema = named('OpenFile', {
  digest: DigestSchema,
  path: text('absolute path of the blob'),
  size: bytes(),
  name: Type.Optional(text('artifact-relative path')),
  kind: Type.Optional(text('e.g. `config`, `weights.gguf`')),
  role: Type.Optional(Type.String()),
  variant: Type.Optional(Type.String()),
  part: Type.Optional(count()),
  runtime: Type.Optional(Type.String())
})
export type OpenFile = Type.Static<typeof OpenFileSchema>

const companion = {
  path: text('at the source'),
  digest: DigestSchema,
  size: bytes(),
  own: Type.Optional(flag("true: the owner's own, which never leaves this store (additive)"))
}

/** A companion of an artifact (spec doc.21). */
export const CompanionFileSchema = named('CompanionFile', { ...companion, blobPath: text('absolute path of the blob') })
export type CompanionFile = Type.Static<typeof CompanionFileSchema>

/** A file of the source that is not kept (spec doc.21). */
export const OmittedFileSchema = named('OmittedFile', {
  path: Type.String(),
  size: bytes(),
  reason: text(
    "`artifact`: a manifest has it; `large`: over 1 MiB; `many`: beyond 1,000 files or 64 MiB; `hidden`, `secret`, `unreadable`: on its owner's disk; `name`"
  ),
  own: Type.Optional(flag('true: its name never leaves this store (additive)'))
})
export type OmittedFile = Type.Static<typeof OmittedFileSchema>

/** The companions of an artifact, as far as they are here (spec doc.21, add.48). */
export const OpenCompanionsSchema = named('OpenCompanions', {
  digest: digest('of the document that lists them'),
  files: Type.Array(CompanionFileSchema),
  missing: Type.Optional(
    Type.Array(Type.Object(companion), { description: 'their bytes are lost; absent when none are (additive)' })
  ),
  omitted: Type.Array(OmittedFileSchema),
  choice: Type.Optional(
    Type.Object(
      {
        names: Type.Optional(Type.Literal('normalized')),
        quants: Type.Optional(Type.Array(Type.String())),
        files: Type.Optional(Type.Array(Type.String())),
        aux: Type.Optional(Type.Union([Type.Literal('none'), Type.Array(Type.String())]))
      },
      { description: 'what its owner chose at the latest import under this name; absent for everything (additive)' }
    )
  ),
  warnings: Type.Optional(Type.Array(Type.String()))
})
export type OpenCompanions = Type.Static<typeof OpenCompanionsSchema>

/** The parts of an artifact that are present (spec route.5). */
export const OpenResultSchema = named('OpenResult', {
  ...resolved,
  files: listOf(OpenFileSchema, 'the index blob, the manifest blob, then its files in order; those present'),
  missing: Type.Optional(listOf(DigestSchema, 'absent when nothing is missing')),
  companions: Type.Optional(OpenCompanionsSchema)
})
export type OpenResult = Type.Static<typeof OpenResultSchema>
