import * as Type from 'typebox'
import { DigestSchema, RefSchema, TimestampSchema } from './fields.ts'
import { bytes, flag, listOf, named, text } from './schema.ts'

/** Views: folders with real names that runtimes load (spec add.17 to add.19). */

/** The layout of a view: for runtimes that take paths, or for those that use a hub cache. */
export const ViewLayoutSchema = Type.Enum(['files', 'hf'], {
  title: 'ViewLayout',
  description:
    '`files`: every file at its own name; `hf`: a hub cache; a view of another model at the same path is added to it'
})
export type ViewLayout = Type.Static<typeof ViewLayoutSchema>

/** How a view gets the store's bytes. Links take no space; a copy may be modified and outlives the store. */
export const ViewModeSchema = Type.Enum(['symlink', 'copy', 'hardlink'], {
  title: 'ViewMode',
  description: 'how the files get their bytes'
})
export type ViewMode = Type.Static<typeof ViewModeSchema>

/** Longest time in seconds for which a view can be held at once. */
export const MAX_HOLD_SECONDS = 3600

/** Body of `POST /v1/views` (spec add.17). */
export const ViewBodySchema = named('ViewBody', {
  ref: RefSchema,
  layout: Type.Optional(ViewLayoutSchema),
  mode: Type.Optional(ViewModeSchema),
  path: Type.Optional(
    text('absolute; absent, an empty folder, or an earlier view. Without it: the managed view of the artifact')
  ),
  replace: Type.Optional(
    flag('false: an earlier view of another model at `path` stays, and the request is refused (additive)')
  ),
  holdSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_HOLD_SECONDS,
      description: 'protects the managed view from removal for this long; ask again to extend it'
    })
  )
})
export type ViewBody = Type.Static<typeof ViewBodySchema>

/** Body of `DELETE /v1/views` (spec route.31). */
export const RemoveViewBodySchema = named('RemoveViewBody', {
  path: text('absolute path of the view'),
  ref: Type.Optional(text('only this model of a hub cache; the folder goes with the last one (additive)'))
})
export type RemoveViewBody = Type.Static<typeof RemoveViewBodySchema>

/** A file of a view. */
export const ViewFileSchema = named('ViewFile', {
  name: text('within the model'),
  path: text('absolute; pass it on unchanged, without resolving links'),
  size: bytes(),
  kind: text('of the entry in the manifest; of the tar for files unpacked from one; `companion` for companions'),
  role: Type.Optional(Type.String()),
  variant: Type.Optional(Type.String()),
  part: Type.Optional(Type.Integer({ minimum: 1 })),
  own: Type.Optional(flag("true: the owner's own, which never leaves this store (additive)")),
  digest: Type.Optional(DigestSchema)
})
export type ViewFile = Type.Static<typeof ViewFileSchema>

const place = {
  path: text('absolute'),
  managed: flag('it lies below `<root>/views`'),
  manifestDigest: DigestSchema,
  layout: ViewLayoutSchema,
  mode: ViewModeSchema,
  heldUntil: Type.Optional(TimestampSchema)
}

/** The response of `POST /v1/views`. */
export const ViewSchema = named('View', {
  ref: RefSchema,
  ...place,
  made: flag('false if the same view was already there and complete'),
  folder: text('the path for runtimes that take a folder'),
  loads: Type.Optional(
    text('the path for runtimes: the GGUF, the first shard of a split one, or else the folder; absent if several fit')
  ),
  files: Type.Array(ViewFileSchema),
  warnings: Type.Optional(listOf(Type.String(), 'why loaders may refuse the folder; absent without any (additive)'))
})
export type View = Type.Static<typeof ViewSchema>

/** A view that is being made. */
export const MakingSchema = named('Making', { bytesDone: bytes(), bytesTotal: bytes() })

/** A view in the list of views. */
export const ViewEntrySchema = named('ViewEntry', {
  ...place,
  others: Type.Optional(listOf(DigestSchema, 'in a hub cache: the artifacts of the other models in it (additive)')),
  present: flag('false if it cannot be found now: its disk is not mounted, or it is not made yet'),
  needed: Type.Optional(flag('false if no name, tag or pin refers to its artifact any more: only views keep it')),
  making: Type.Optional(MakingSchema)
})
export type ViewEntry = Type.Static<typeof ViewEntrySchema>

/** The response of `GET /v1/views`, sorted by path. */
export const ViewListSchema = named('ViewList', { views: Type.Array(ViewEntrySchema) })
export type ViewList = Type.Static<typeof ViewListSchema>

/** The response of `DELETE /v1/views`. */
export const RemovedViewSchema = named('RemovedView', {
  path: Type.String(),
  removed: flag('false if the folder was already gone')
})
export type RemovedView = Type.Static<typeof RemovedViewSchema>

/** The tools whose folders can follow the store. */
export const STANDING_LAYOUTS = ['hf', 'llama', 'lmstudio', 'comfyui', 'ollama'] as const
/** The folders of other tools that a standing view can keep up to date. */
export const StandingLayoutSchema = Type.Enum(STANDING_LAYOUTS, {
  title: 'StandingLayout',
  description: 'whose folder it is: the hub client, llama-server, LM Studio, ComfyUI, Ollama'
})
export type StandingLayout = Type.Static<typeof StandingLayoutSchema>

const standing = {
  layout: StandingLayoutSchema,
  path: text("absolute: the tool's folder; made if it is absent"),
  match: Type.Optional(listOf(Type.String(), 'models to show: `ns/name:quant`, with `*` in all parts; default: all')),
  copy: Type.Optional(
    flag('true: the files are copies, which share blocks with the store where they can; default: links')
  ),
  reload: Type.Optional(
    text("layout `llama`: the address of llama-server's router on this machine, such as `http://127.0.0.1:8080`")
  )
}

/** Body of `PUT /v1/views/standing` (spec add.63). */
export const StandingViewBodySchema = named('StandingViewBody', standing)
export type StandingViewBody = Type.Static<typeof StandingViewBodySchema>

/** Body of `DELETE /v1/views/standing`. */
export const RemoveStandingViewBodySchema = named('RemoveStandingViewBody', { path: text('absolute') })
export type RemoveStandingViewBody = Type.Static<typeof RemoveStandingViewBodySchema>

/** A folder of a tool that follows the store. */
export const StandingViewSchema = named('StandingView', {
  ...standing,
  entries: Type.Integer({ minimum: 0, description: 'links, copies and small files in it that are ours' }),
  copiedBytes: Type.Optional(bytes('the space that copies take beyond that of the store')),
  bytesDone: Type.Optional(bytes('while copies are being made: those so far')),
  taken: Type.Optional(listOf(Type.String(), "some of the paths where the tool's own files are, which stay")),
  problem: Type.Optional(text('why it does not follow now'))
})
export type StandingView = Type.Static<typeof StandingViewSchema>

/** The response of `GET /v1/views/standing`. */
export const StandingViewListSchema = named('StandingViewList', { views: Type.Array(StandingViewSchema) })
export type StandingViewList = Type.Static<typeof StandingViewListSchema>
