import * as Type from 'typebox'
import { CountSchema } from './fields.ts'
import { CatalogEntrySchema } from './plan.ts'

/** A repository that the hub found; what the hub does not say is absent. */
export const HubEntrySchema = Type.Object(
  {
    repo: Type.String({ description: '`org/name`' }),
    gated: Type.Boolean(),
    private: Type.Boolean(),
    formats: Type.Array(Type.String(), { description: '`gguf`, `safetensors`' }),
    license: Type.Optional(Type.String({ description: 'as the hub names it' })),
    parameters: Type.Optional(CountSchema),
    downloads: Type.Optional(CountSchema),
    updatedAt: Type.Optional(Type.String({ description: 'UTC, RFC 3339' }))
  },
  { title: 'HubEntry' }
)
/** A value of {@link HubEntrySchema}. */
export type HubEntry = Type.Static<typeof HubEntrySchema>

/** `GET /v1/search` (additive). */
export const SearchResultSchema = Type.Object(
  {
    entries: Type.Array(HubEntrySchema, { description: 'of the hub, the most downloaded first' }),
    catalog: Type.Optional(Type.Array(CatalogEntrySchema, { description: 'where `source` is `catalog`' })),
    next: Type.Optional(Type.String({ description: 'the `cursor` of the next page; absent on the last one' }))
  },
  { title: 'SearchResult' }
)
/** A value of {@link SearchResultSchema}. */
export type SearchResult = Type.Static<typeof SearchResultSchema>

/** The query of `GET /v1/search`. */
export const SearchQuerySchema = Type.Object({
  q: Type.String({ description: 'words, at most 200 characters' }),
  source: Type.Optional(
    Type.String({ enum: ['hub', 'catalog'], description: '`hub` when absent; the rest is for it' })
  ),
  format: Type.Optional(Type.String({ enum: ['gguf', 'safetensors'] })),
  license: Type.Optional(Type.String({ description: 'as the hub names it, such as `apache-2.0`' })),
  minParameters: Type.Optional(Type.String({ description: 'a whole number' })),
  maxParameters: Type.Optional(Type.String({ description: 'a whole number' })),
  limit: Type.Optional(Type.String({ description: '1 to 100 entries; 20 when absent' })),
  cursor: Type.Optional(Type.String({ description: '`next` of the page before' }))
})
/** A value of {@link SearchQuerySchema}. */
export type SearchQuery = Type.Static<typeof SearchQuerySchema>
