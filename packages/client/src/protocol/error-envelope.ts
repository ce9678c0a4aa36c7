import Type from 'typebox'

/** The one shape of every error, in responses and in failed jobs (spec err.1). */
export const ErrorEnvelopeSchema = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ description: 'a code of the error table' }),
      message: Type.String({ description: 'for people: what was wrong and what to do' }),
      candidates: Type.Optional(Type.Array(Type.String(), { description: 'known alternatives' }))
    })
  },
  { title: 'ErrorEnvelope' }
)
export type ErrorEnvelope = Type.Static<typeof ErrorEnvelopeSchema>
