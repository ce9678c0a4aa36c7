import * as Type from 'typebox'
import { BytesSchema, DigestSchema, RefSchema, TimestampSchema } from './fields.ts'

/** Views: folders with real names that runtimes load (spec add.17 to add.19). */

/** The layout of a view: for runtimes that take paths, or for those that use a hub cache. */
export const ViewLayoutSchema = Type.Union([Type.Literal('files'), Type.Literal('hf')], {
  title: 'ViewLayout',
  description:
    '`files`: every file at its own name; `hf`: a hub cache, to which a view of another model at the same path is added'
})
/** A value of {@link ViewLayoutSchema}. */
export type ViewLayout = Type.Static<typeof ViewLayoutSchema>

/** How a view gets the store's bytes. Links take no space; a copy may be modified and outlives the store. */
export const ViewModeSchema = Type.Union([Type.Literal('symlink'), Type.Literal('copy'), Type.Literal('hardlink')], {
  title: 'ViewMode',
  description: 'how the files come by their bytes'
})
/** A value of {@link ViewModeSchema}. */
export type ViewMode = Type.Static<typeof ViewModeSchema>

/** Longest time in seconds for which a view can be held at once. */
export const MAX_HOLD_SECONDS = 3600

/** Body of `POST /v1/views` (spec add.17). */
export const ViewBodySchema = Type.Object(
  {
    ref: RefSchema,
    layout: Type.Optional(ViewLayoutSchema),
    mode: Type.Optional(ViewModeSchema),
    path: Type.Optional(
      Type.String({ description: 'absolute; absent, or an earlier view. Without it: the managed view of the artifact' })
    ),
    holdSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_HOLD_SECONDS,
        description: 'nobody removes the managed view for so long; ask again to prolong it'
      })
    )
  },
  { title: 'ViewBody' }
)
/** A value of {@link ViewBodySchema}. */
export type ViewBody = Type.Static<typeof ViewBodySchema>

/** Body of `DELETE /v1/views` (spec route.31). */
export const RemoveViewBodySchema = Type.Object(
  {
    path: Type.String({ description: 'absolute path of the view' }),
    ref: Type.Optional({
      ...RefSchema,
      description: 'only this model of a hub cache; the folder goes with the last one (additive)'
    })
  },
  { title: 'RemoveViewBody' }
)
/** A value of {@link RemoveViewBodySchema}. */
export type RemoveViewBody = Type.Static<typeof RemoveViewBodySchema>

/** A file of a view. */
export const ViewFileSchema = Type.Object(
  {
    name: Type.String({ description: 'within the model' }),
    path: Type.String({ description: 'absolute; to be handed on as it is, links not resolved' }),
    size: BytesSchema,
    kind: Type.String({
      description: 'of the entry in the manifest; that of the tar for what was in one; `companion` beside the manifest'
    }),
    role: Type.Optional(Type.String()),
    variant: Type.Optional(Type.String()),
    part: Type.Optional(Type.Integer({ minimum: 1 })),
    own: Type.Optional(Type.Boolean({ description: "true: the owner's own, which no road out takes (additive)" })),
    digest: Type.Optional(DigestSchema)
  },
  { title: 'ViewFile' }
)
/** A value of {@link ViewFileSchema}. */
export type ViewFile = Type.Static<typeof ViewFileSchema>

const place = {
  path: Type.String({ description: 'absolute' }),
  managed: Type.Boolean({ description: 'it lies below `<root>/views`' }),
  manifestDigest: DigestSchema,
  layout: ViewLayoutSchema,
  mode: ViewModeSchema,
  heldUntil: Type.Optional(TimestampSchema)
}

/** The response of `POST /v1/views`. */
export const ViewSchema = Type.Object(
  {
    ref: RefSchema,
    ...place,
    made: Type.Boolean({ description: 'false when the same view was there already, whole' }),
    folder: Type.String({ description: 'what a runtime that takes a folder is given' }),
    loads: Type.Optional(
      Type.String({
        description:
          'what a runtime is given: the GGUF, the first shard of a split one, else the folder; absent where several could be meant'
      })
    ),
    files: Type.Array(ViewFileSchema),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description: 'what a loader may find wrong with the folder; absent without any (additive)'
      })
    )
  },
  { title: 'View' }
)
/** A value of {@link ViewSchema}. */
export type View = Type.Static<typeof ViewSchema>

/** A view that is being made. */
export const MakingSchema = Type.Object({ bytesDone: BytesSchema, bytesTotal: BytesSchema }, { title: 'Making' })

/** A view in the list of views. */
export const ViewEntrySchema = Type.Object(
  {
    ...place,
    others: Type.Optional(
      Type.Array(DigestSchema, { description: 'in a hub cache: the artifacts of the other models in it (additive)' })
    ),
    present: Type.Boolean({
      description: 'false where it cannot be found now: on a disk that is away, or not made yet'
    }),
    needed: Type.Optional(
      Type.Boolean({
        description: 'false where no name, tag or pin stands for its artifact any more, so that only views keep it'
      })
    ),
    making: Type.Optional(MakingSchema)
  },
  { title: 'ViewEntry' }
)
/** A value of {@link ViewEntrySchema}. */
export type ViewEntry = Type.Static<typeof ViewEntrySchema>

/** The response of `GET /v1/views`, sorted by path. */
export const ViewListSchema = Type.Object({ views: Type.Array(ViewEntrySchema) }, { title: 'ViewList' })
/** A value of {@link ViewListSchema}. */
export type ViewList = Type.Static<typeof ViewListSchema>

/** The response of `DELETE /v1/views`. */
export const RemovedViewSchema = Type.Object(
  { path: Type.String(), removed: Type.Boolean({ description: 'false when the folder was gone already' }) },
  { title: 'RemovedView' }
)
/** A value of {@link RemovedViewSchema}. */
export type RemovedView = Type.Static<typeof RemovedViewSchema>
