import { deserializeError, type SerializedError, serializeError } from '@svc/internal-errors'

/**
 * How errors are passed between threads. Structured clone keeps neither an error's class nor its own properties, so
 * each package encodes its errors as plain data.
 */
export interface ErrorCodec {
  readonly encode: (error: unknown) => unknown
  readonly decode: (wire: never) => Error
  /** The thread ended during a call; `cause` is what it threw, if known. */
  readonly lost?: (cause: unknown) => Error
  /** The caller closed the thread. */
  readonly closed?: () => Error
}

/** Errors as plain `Error`s, with the fields of system errors. */
export const plainErrors = {
  encode: (error: unknown): SerializedError => serializeError(error),
  decode: (wire: SerializedError): Error => deserializeError(wire)
} satisfies ErrorCodec
