import * as Type from 'typebox'
import { CatalogEntrySchema } from './plan.ts'
import { count, listOf, named, text } from './schema.ts'

/** A repository that the hub found; what the hub does not say is absent. */
export const HubEntrySchema = named('HubEntry', {
  repo: text('`org/name`'),
  gated: Type.Boolean(),
  private: Type.Boolean(),
  formats: listOf(Type.String(), '`gguf`, `safetensors`'),
  license: Type.Optional(text('as the hub names it')),
  parameters: Type.Optional(count()),
  downloads: Type.Optional(count()),
  updatedAt: Type.Optional(text('UTC, RFC 3339'))
})
export type HubEntry = Type.Static<typeof HubEntrySchema>

/** `GET /v1/search` (additive). */
export const SearchResultSchema = named('SearchResult', {
  entries: listOf(HubEntrySchema, 'of the hub, the most downloaded first'),
  catalog: Type.Optional(listOf(CatalogEntrySchema, 'if `source` is `catalog`')),
  next: Type.Optional(text('the `cursor` of the next page; absent on the last one'))
})
export type SearchResult = Type.Static<typeof SearchResultSchema>

/** The query of `GET /v1/search`. */
export const SearchQuerySchema = Type.Object({
  q: text('words, at most 200 characters'),
  source: Type.Optional(
    Type.String({ enum: ['hub', 'catalog'], description: '`hub` when absent; the other fields are only for it' })
  ),
  format: Type.Optional(Type.String({ enum: ['gguf', 'safetensors'] })),
  license: Type.Optional(text('as the hub names it, such as `apache-2.0`')),
  minParameters: Type.Optional(text('a whole number')),
  maxParameters: Type.Optional(text('a whole number')),
  limit: Type.Optional(text('1 to 100 entries; 20 when absent')),
  cursor: Type.Optional(text('`next` of the previous page'))
})
export type SearchQuery = Type.Static<typeof SearchQuerySchema>

/** `POST /v1/hub/account` (additive). */
export const HubAccountResultSchema = named('HubAccountResult', {
  endpoint: text('the hub that was asked'),
  name: Type.Optional(text('of the account; absent where the hub does not tell it')),
  variable: Type.Optional(text("the variable of the daemon's environment that has its token now")),
  file: Type.Optional(text('the file that its token is read from; absent if a variable has it, or no file is read'))
})
export type HubAccountResult = Type.Static<typeof HubAccountResultSchema>
