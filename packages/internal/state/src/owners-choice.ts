import type { OwnersChoice } from '@svc/classify'
import { type FieldRule, listOf, objectOf, oneOf, optional, text, yes } from './strict.ts'

const auxRule: FieldRule = (value, what) => (value === 'none' ? undefined : listOf(text)(value, what))

/** The rule of a choice in a record. */
export const OWNERS_CHOICE = objectOf<OwnersChoice>({
  names: optional(oneOf('normalized')),
  quants: optional(listOf(text)),
  files: optional(listOf(text)),
  aux: optional(auxRule),
  recognise: optional(oneOf('opaque')),
  allowPickle: yes
})
