import type { TObject } from 'typebox'
import { Errors } from 'typebox/value'

/** What is wrong with a value, by its schema's keywords. */
export interface SchemaProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly message: string
  readonly params: object
}

/** The first thing that is wrong with a value; undefined for a valid one. */
export function schemaProblem(schema: TObject, value: unknown): SchemaProblem | undefined {
  const [problem] = Errors(schema, value)
  return problem
}
