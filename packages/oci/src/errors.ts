import { CodedError, errnoOf } from '@svc/internal-errors'
import { isNoSpace, NOT_REGULAR } from '@svc/internal-files'

/** Stable codes of {@link OciError}; programs should test these, messages are for people. */
export type OciErrorCode =
  /** A document, a layout or an archive violates the OCI specifications or a limit of this package. */
  | 'E_FORMAT'
  /** Valid, but not supported: compressed layers, files without a name. */
  | 'E_UNSUPPORTED'
  /** No such tag, manifest, blob or repository. */
  | 'E_NOT_FOUND'
  /** The registry requires other credentials (401, 403). */
  | 'E_DENIED'
  /** The registry limits the rate of requests (429). */
  | 'E_RATE_LIMITED'
  /** The registry is unreachable, fails, or sends invalid answers. */
  | 'E_UNAVAILABLE'
  /** The bytes do not match their digest. */
  | 'E_DIGEST_MISMATCH'
  /** Text that is not `registry/name:tag`. */
  | 'E_BAD_REFERENCE'
  /** The Docker configuration or a credential helper cannot be used. */
  | 'E_CREDENTIALS'
  /** The place for a layout or an archive is taken by something else. */
  | 'E_BAD_TARGET'
  /** The file system or a quota is full. */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'

/** Facts beyond the message; which of them are present depends on the code. */
export interface OciErrorDetails {
  readonly path?: string
  readonly digest?: string
  /** The HTTP status of the registry's answer. */
  readonly status?: number
  /** Alternatives that may have been meant. */
  readonly candidates?: readonly string[]
  /** How long the registry asked to wait, in milliseconds. */
  readonly retryAfterMs?: number
}

/** The only error class of this package. */
export class OciError extends CodedError<OciErrorCode, OciErrorDetails> {
  override readonly name = 'OciError'
}

/** Wraps an error of the file system; errors of this package and aborts pass unchanged. */
export function ioError(error: unknown, doing: string, path: string, signal?: AbortSignal): unknown {
  if (error instanceof OciError || signal?.aborted === true) return error
  if (isNoSpace(error)) return new OciError('E_NO_SPACE', `no space left to ${doing}: ${path}`, { path }, error)
  const code = errnoOf(error) === NOT_REGULAR ? 'E_BAD_TARGET' : 'E_IO'
  return new OciError(code, `cannot ${doing}: ${(error as Error).message}`, { path }, error)
}
