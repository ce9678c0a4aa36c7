import type { ErrorCode } from '@svc/client/protocol'
import { LibraryError, type LibraryErrorDetails } from '@svc/library/parts'

/** The start was refused: configuration, root, lock or socket. The message is for the person at the terminal. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
  /** What to type instead. */
  readonly hint: string | undefined

  constructor(message: string, { hint, cause }: { readonly hint?: string; readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.hint = hint
  }
}

/** The configuration is invalid. */
export class ConfigError extends StartError {
  override readonly name = 'ConfigError'
}

/** Further properties of a {@link DaemonError}. */
export interface DaemonErrorDetails extends Pick<LibraryErrorDetails, 'candidates' | 'cause'> {
  /** HTTP status if it differs from the code's status in the table, e.g. 502 for the `E_UNKNOWN_REF` of a hub. */
  readonly status?: number | undefined
}

/** A failure with a code of spec err.2. Clients see the message: no secret, and no path that they did not send. */
export class DaemonError extends LibraryError<ErrorCode> {
  override readonly name = 'DaemonError'
  readonly status: number | undefined

  constructor(code: ErrorCode, message: string, { status, ...details }: DaemonErrorDetails = {}) {
    super(code, message, details)
    this.status = status
  }
}
