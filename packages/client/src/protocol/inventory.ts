import * as Type from 'typebox'
import { DigestSchema, OriginSchema, TimestampSchema } from './fields.ts'
import { WithheldSchema } from './why.ts'

/** A quant of a repository, with what this daemon knows about it (spec add.16). */
export const ModelMemberSchema = Type.Object(
  {
    quant: Type.String(),
    manifest: DigestSchema,
    sizeBytes: Type.Integer({ minimum: 0, description: 'of its files; 0 while the manifest is missing' }),
    complete: Type.Boolean(),
    private: Type.Boolean(),
    importedAt: Type.Optional(TimestampSchema),
    lastUsedAt: Type.Optional(TimestampSchema),
    missingBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'of files that are not here' })),
    damaged: Type.Optional(Type.Boolean({ description: 'some of what is missing was found corrupt' })),
    withheld: Type.Optional(WithheldSchema),
    restricted: Type.Optional(Type.Boolean({ description: 'its hub repository needed access' })),
    companions: Type.Optional({ ...DigestSchema, description: 'the document of the files beside it (additive)' }),
    away: Type.Optional(
      Type.Boolean({ description: 'evicted: what is missing comes back with `POST /v1/ensure` (additive)' })
    ),
    pinned: Type.Optional(Type.Boolean({ description: '`PUT /v1/pin` keeps its bytes here (additive)' })),
    origin: Type.Optional(OriginSchema),
    newer: Type.Optional(Type.String({ description: 'the newer commit that the last `POST /v1/outdated` found' }))
  },
  { title: 'ModelMember' }
)
/** A value of {@link ModelMemberSchema}. */
export type ModelMember = Type.Static<typeof ModelMemberSchema>

/** A repository of the inventory, and the quants of its current index. */
export const NamespaceEntrySchema = Type.Object(
  {
    ns: Type.String(),
    name: Type.String(),
    indexDigest: DigestSchema,
    indexPresent: Type.Boolean(),
    quants: Type.Array(Type.String(), { description: 'of the current index, where it is present and valid' }),
    members: Type.Array(ModelMemberSchema, { description: 'in the order of `quants`' })
  },
  { title: 'NamespaceEntry' }
)
/** A value of {@link NamespaceEntrySchema}. */
export type NamespaceEntry = Type.Static<typeof NamespaceEntrySchema>

/** A tag of the inventory: a name for one index, which stays the same when the repository changes. */
export const TagEntrySchema = Type.Object(
  {
    repo: Type.String({ description: '`ns/name`' }),
    tag: Type.String(),
    digest: DigestSchema,
    blobPresent: Type.Boolean()
  },
  { title: 'TagEntry' }
)
/** A value of {@link TagEntrySchema}. */
export type TagEntry = Type.Static<typeof TagEntrySchema>

/** A record below `state/` that cannot be read; what it names is left out (spec disk.19). */
export const DamagedRecordSchema = Type.Object(
  {
    file: Type.String({ description: 'relative to the store, as in `state/repos/ns/name.json`' }),
    what: Type.String({ description: 'what is the matter with it, and how to go on' })
  },
  { title: 'DamagedRecord' }
)
/** A value of {@link DamagedRecordSchema}. */
export type DamagedRecord = Type.Static<typeof DamagedRecordSchema>

/** The inventory (spec route.26). */
export const InventorySchema = Type.Object(
  {
    skeleton: Type.Literal(true),
    note: Type.String({ description: 'a constant' }),
    namespaces: Type.Array(NamespaceEntrySchema),
    tags: Type.Array(TagEntrySchema),
    damaged: Type.Optional(
      Type.Array(DamagedRecordSchema, { description: 'records that cannot be read; absent without any (additive)' })
    )
  },
  { title: 'Inventory' }
)
/** A value of {@link InventorySchema}. */
export type Inventory = Type.Static<typeof InventorySchema>
