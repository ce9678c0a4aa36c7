import { CodedError } from '@svc/internal-errors'

/** The API error codes for failures of a hub (spec hub.6). */
export type HubErrorCode =
  | 'E_UNKNOWN_REF'
  | 'E_SOURCE_FORBIDDEN'
  | 'E_RATE_LIMITED'
  | 'E_SOURCE_UNAVAILABLE'
  | 'E_NOT_IMPORTABLE'
  | 'E_INTERNAL'

/** The reason, finer than the code; stable, for programs. */
export type HubErrorReason =
  | 'bad-request'
  | 'no-such-repo'
  | 'no-such-revision'
  | 'hidden-or-absent'
  | 'gated'
  | 'token-rejected'
  | 'disabled'
  | 'legal'
  | 'denied'
  | 'rate-limited'
  | 'unreachable'
  | 'refused-redirect'
  | 'bad-answer'
  | 'bad-listing'
  | 'wrong-bytes'
  | 'sink'

/** What an error is about, for logs and messages. Fields are present where they apply. */
export interface HubErrorDetails {
  /** Scheme, host and path, but not the query, which may contain a signature. */
  readonly url?: string
  readonly status?: number
  /** The file's path in the repository. */
  readonly path?: string
}

/** Every failure of this package, except aborts (the signal's reason) and errors of the caller's sink (unchanged). */
export class HubError extends CodedError<HubErrorCode, HubErrorDetails> {
  override readonly name = 'HubError'
  readonly reason: HubErrorReason

  constructor(code: HubErrorCode, reason: HubErrorReason, message: string, details?: HubErrorDetails, cause?: unknown) {
    super(code, message, details, cause)
    this.reason = reason
  }
}

/** An invalid listing: none of it is used. */
export const refusedListing = (repoId: string, why: string): HubError =>
  new HubError(
    'E_NOT_IMPORTABLE',
    'bad-listing',
    `the listing of "${repoId}" is refused, and nothing was fetched: ${why}`
  )
