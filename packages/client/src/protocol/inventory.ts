import * as Type from 'typebox'
import { DigestSchema, OriginSchema, TimestampSchema } from './fields.ts'
import { count, digest, flag, listOf, named, text } from './schema.ts'
import { WithheldSchema } from './why.ts'

/** A quant of a repository, with what this daemon knows about it (spec add.16). */
export const ModelMemberSchema = named('ModelMember', {
  quant: Type.String(),
  manifest: DigestSchema,
  sizeBytes: count('of its files; 0 while the manifest is missing'),
  complete: Type.Boolean(),
  private: Type.Boolean(),
  importedAt: Type.Optional(TimestampSchema),
  lastUsedAt: Type.Optional(TimestampSchema),
  missingBytes: Type.Optional(count('of files that are not here')),
  damaged: Type.Optional(flag('some of the missing files were found corrupt')),
  withheld: Type.Optional(WithheldSchema),
  restricted: Type.Optional(flag('its hub repository needed access')),
  companions: Type.Optional(digest('the document that lists its companions (additive)')),
  malformed: Type.Optional(
    Type.Array(text('a file'), { description: 'its weights that no runtime can load; absent without any (additive)' })
  ),
  away: Type.Optional(flag('evicted: `POST /v1/ensure` fetches what is missing (additive)')),
  pinned: Type.Optional(flag('`PUT /v1/pin` keeps its bytes here (additive)')),
  origin: Type.Optional(OriginSchema),
  newer: Type.Optional(text('the newer commit that the last `POST /v1/outdated` found'))
})
export type ModelMember = Type.Static<typeof ModelMemberSchema>

/** A repository of the inventory, and the quants of its current index. */
export const NamespaceEntrySchema = named('NamespaceEntry', {
  ns: Type.String(),
  name: Type.String(),
  indexDigest: DigestSchema,
  indexPresent: Type.Boolean(),
  quants: listOf(Type.String(), 'of the current index, if it is present and valid'),
  members: listOf(ModelMemberSchema, 'in the order of `quants`')
})
export type NamespaceEntry = Type.Static<typeof NamespaceEntrySchema>

/** A tag of the inventory: a name for one index, which stays the same when the repository changes. */
export const TagEntrySchema = named('TagEntry', {
  repo: text('`ns/name`'),
  tag: Type.String(),
  digest: DigestSchema,
  blobPresent: Type.Boolean()
})
export type TagEntry = Type.Static<typeof TagEntrySchema>

/** A record below `state/` that cannot be read; what it names is left out (spec disk.19). */
export const DamagedRecordSchema = named('DamagedRecord', {
  file: text('relative to the store, as in `state/repos/ns/name.json`'),
  what: text('what is wrong with it, and what to do')
})
export type DamagedRecord = Type.Static<typeof DamagedRecordSchema>

/** The inventory (spec route.26). */
export const InventorySchema = named('Inventory', {
  skeleton: Type.Literal(true),
  note: text('a constant'),
  namespaces: Type.Array(NamespaceEntrySchema),
  tags: Type.Array(TagEntrySchema),
  next: Type.Optional(text('with `limit`: the name to give as `after`; absent where no more follow (additive)')),
  damaged: Type.Optional(listOf(DamagedRecordSchema, 'records that cannot be read; absent without any (additive)'))
})
export type Inventory = Type.Static<typeof InventorySchema>
