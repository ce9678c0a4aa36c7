import { CodedError } from '@svc/internal-errors'
import type { ErrorCode } from './protocol/error-codes.ts'

/** Failures that the client itself detects, in addition to the daemon's codes. */
export type ClientOnlyCode =
  /** No daemon listens on the socket, or the connection broke. */
  | 'E_UNREACHABLE'
  /** The folder of the default socket belongs to somebody else, who could be listening there. Nothing was sent. */
  | 'E_UNSAFE_SOCKET'
  /** The response violates the contract: another program listens on the socket, or there is a defect. */
  | 'E_BAD_RESPONSE'
  /** The body of a blob ended early. */
  | 'E_SHORT_BODY'
  /** The daemon did not answer within `timeoutMs`. */
  | 'E_NO_ANSWER'

/** The codes of a newer daemon pass unchanged. */
export type ClientErrorCode = ErrorCode | ClientOnlyCode | (string & {})

/** Further properties of a {@link ClientError}. */
export interface ClientErrorDetails {
  /** HTTP status, if there was a response. */
  readonly status?: number | undefined
  /** Known alternatives from the daemon (spec err.1). */
  readonly candidates?: readonly string[] | undefined
  readonly cause?: unknown
}

/** The one error class of this package; aborts reject with the signal's own reason instead. */
export class ClientError extends CodedError<ClientErrorCode> {
  override readonly name = 'ClientError'
  readonly status: number | undefined
  readonly candidates: readonly string[]

  constructor(code: ClientErrorCode, message: string, details: ClientErrorDetails = {}) {
    super(code, message, {}, details.cause)
    this.status = details.status
    this.candidates = details.candidates ?? []
  }
}
