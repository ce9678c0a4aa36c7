import * as Type from 'typebox'
import { listOf, named, text } from './schema.ts'

/** A failure: the object inside the envelope, and the `error` of a failed job (spec err.1, err.5). */
export const ErrorBodySchema = named('ErrorBody', {
  code: text('a code of the error table'),
  message: text('for people: what was wrong and what to do'),
  candidates: Type.Optional(listOf(Type.String(), 'known alternatives'))
})
export type ErrorBody = Type.Static<typeof ErrorBodySchema>

/**
 * The form of every error response (spec err.1). A failed job has the same form with more fields beside `error`, so
 * that `body.error.code` works for both.
 */
export const ErrorEnvelopeSchema = named('ErrorEnvelope', { error: ErrorBodySchema })
export type ErrorEnvelope = Type.Static<typeof ErrorEnvelopeSchema>
