import * as Type from 'typebox'
import { flag, listOf, named, text } from './schema.ts'

/** Body of `POST /v1/names`. */
export const NameBodySchema = named('NameBody', {
  from: text('`ns/name` for all quants and the tags, or `ns/name:quant`'),
  as: text('`ns/name`, lower case'),
  move: Type.Optional(flag('true: the first name is given up')),
  replace: Type.Optional(flag('true: quants and tags of the new name may change what they mean'))
})
export type NameBody = Type.Static<typeof NameBodySchema>

/** `POST /v1/names` */
export const NamedModelSchema = named('NamedModel', {
  as: text('`ns/name`'),
  quants: listOf(Type.String(), 'that have the new name'),
  tags: listOf(Type.String(), 'that have the new name')
})
export type NamedModel = Type.Static<typeof NamedModelSchema>
