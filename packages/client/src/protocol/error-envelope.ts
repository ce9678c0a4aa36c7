import Type from 'typebox'

/** What went wrong: the object inside the envelope, and the `error` of a failed job (spec err.1, err.5). */
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
 * The one shape of every error (spec err.1). A failed job is one too, with more fields beside `error`: `body.error.code` reads
 * responses and jobs alike.
 */
export const ErrorEnvelopeSchema = Type.Object({ error: ErrorBodySchema }, { title: 'ErrorEnvelope' })
/** A value of {@link ErrorEnvelopeSchema}. */
export type ErrorEnvelope = Type.Static<typeof ErrorEnvelopeSchema>
