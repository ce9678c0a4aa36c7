import Type from 'typebox'
import { DigestSchema } from './fields.ts'

export const NamespaceEntrySchema = Type.Object(
  {
    ns: Type.String(),
    name: Type.String(),
    indexDigest: DigestSchema,
    indexPresent: Type.Boolean(),
    quants: Type.Array(Type.String(), { description: 'of the current index, where it is present and valid' })
  },
  { title: 'NamespaceEntry' }
)
export type NamespaceEntry = Type.Static<typeof NamespaceEntrySchema>

export const TagEntrySchema = Type.Object(
  {
    repo: Type.String({ description: '`ns/name`' }),
    tag: Type.String(),
    digest: DigestSchema,
    blobPresent: Type.Boolean()
  },
  { title: 'TagEntry' }
)
export type TagEntry = Type.Static<typeof TagEntrySchema>

/** The inventory (spec route.26). */
export const InventorySchema = Type.Object(
  {
    skeleton: Type.Literal(true),
    note: Type.String({ description: 'a constant' }),
    namespaces: Type.Array(NamespaceEntrySchema),
    tags: Type.Array(TagEntrySchema)
  },
  { title: 'Inventory' }
)
export type Inventory = Type.Static<typeof InventorySchema>
