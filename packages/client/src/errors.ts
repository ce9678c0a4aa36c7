import type { ErrorCode } from './protocol/error-codes.ts'

/** Failures that the client finds itself, beside the daemon's own codes. */
export type ClientOnlyCode =
  /** No daemon answers at the socket, or it went away. */
  | 'E_UNREACHABLE'
  /** The folder of the default socket is not the user's own: whoever made it could listen there. Nothing was sent. */
  | 'E_UNSAFE_SOCKET'
  /** The answer is not what the contract says: another program behind the socket, or a defect. */
  | 'E_BAD_RESPONSE'
  /** A blob's body ended early. */
  | 'E_SHORT_BODY'
  /** The daemon did not answer within `timeoutMs`. */
  | 'E_NO_ANSWER'

/** Codes of a newer daemon arrive as they are. */
export type ClientErrorCode = ErrorCode | ClientOnlyCode | (string & {})

/** What a {@link ClientError} carries beside code and message. */
export interface ClientErrorDetails {
  /** HTTP status, where there was a response. */
  readonly status?: number | undefined
  /** Known alternatives that the daemon named (spec err.1). */
  readonly candidates?: readonly string[] | undefined
  readonly cause?: unknown
}

/** The one error class of this package, but for aborts: these reject with the signal's own reason. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode
  readonly status: number | undefined
  readonly candidates: readonly string[]

  constructor(code: ClientErrorCode, message: string, details: ClientErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = details.status
    this.candidates = details.candidates ?? []
  }
}
