import * as Type from 'typebox'
import { DamagedRecordSchema, TagEntrySchema } from './inventory.ts'
import { listOf, named, text } from './schema.ts'

/** `GET /v1/tags` */
export const TagListSchema = named('TagList', {
  tags: listOf(TagEntrySchema, 'by repository, then by tag'),
  damaged: Type.Optional(
    listOf(DamagedRecordSchema, 'records that cannot be read, with their tags; absent without any')
  )
})
export type TagList = Type.Static<typeof TagListSchema>

/** Body of `PUT /v1/tags/{ns}/{name}/{tag}`. */
export const TagBodySchema = named('TagBody', {
  digest: Type.Optional(text('`sha256:<hex>` of an index in the store; default: the current one of the repository'))
})
export type TagBody = Type.Static<typeof TagBodySchema>
