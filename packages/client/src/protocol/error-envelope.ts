import * as Type from 'typebox'

/** A failure: the object inside the envelope, and the `error` of a failed job (spec err.1, err.5). */
export const ErrorBodySchema = Type.Object(
  {
    code: Type.String({ description: 'a code of the error table' }),
    message: Type.String({ description: 'for people: what was wrong and what to do' }),
    candidates: Type.Optional(Type.Array(Type.String(), { description: 'known alternatives' }))
  },
  { title: 'ErrorBody' }
)
/** A value of {@link ErrorBodySchema}. */
export type ErrorBody = Type.Static<typeof ErrorBodySchema>

/**
 * The form of every error response (spec err.1). A failed job has the same form with more fields beside `error`, so
 * that `body.error.code` works for both.
 */
export const ErrorEnvelopeSchema = Type.Object({ error: ErrorBodySchema }, { title: 'ErrorEnvelope' })
/** A value of {@link ErrorEnvelopeSchema}. */
export type ErrorEnvelope = Type.Static<typeof ErrorEnvelopeSchema>
