import { isNoSpace } from '@svc/internal-files'

/** Stable codes of {@link OciError}; programs decide by them, messages are for people. */
export type OciErrorCode =
  /** A document, a layout or an archive is not what the OCI specifications say, or beyond the bounds here. */
  | 'E_FORMAT'
  /** Well formed, and nothing that is read here: compressed layers, files without a name. */
  | 'E_UNSUPPORTED'
  /** No such tag, manifest, blob or repository. */
  | 'E_NOT_FOUND'
  /** The registry wants other credentials (401, 403). */
  | 'E_DENIED'
  /** The registry limits how often it is asked (429). */
  | 'E_RATE_LIMITED'
  /** The registry cannot be reached, fails, or answers what no registry answers. */
  | 'E_UNAVAILABLE'
  /** Other bytes than the digest says. */
  | 'E_DIGEST_MISMATCH'
  /** Text that is no `registry/name:tag`. */
  | 'E_BAD_REFERENCE'
  /** The Docker configuration or a credential helper cannot be used. */
  | 'E_CREDENTIALS'
  /** Something else lies where a layout or an archive is to be written. */
  | 'E_BAD_TARGET'
  /** The file system or the quota is full. */
  | 'E_NO_SPACE'
  /** Any other failure of the file system; the original error is the `cause`. */
  | 'E_IO'

/** Facts beside the message; which are present depends on the code. */
export interface OciErrorDetails {
  readonly path?: string
  readonly digest?: string
  /** Of a registry's answer. */
  readonly status?: number
  /** What could have been meant. */
  readonly candidates?: readonly string[]
  /** How long a registry asked to be left alone, in milliseconds. */
  readonly retryAfterMs?: number
}

/** The one error class of this package. */
export class OciError extends Error {
  override readonly name = 'OciError'
  readonly code: OciErrorCode
  readonly details: OciErrorDetails

  constructor(code: OciErrorCode, message: string, details: OciErrorDetails = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }
}

/** Wraps a failure of the file system; errors of this package and aborts are passed on. */
export function ioError(error: unknown, doing: string, path: string, signal?: AbortSignal): unknown {
  if (error instanceof OciError || signal?.aborted === true) return error
  if (isNoSpace(error)) {
    return new OciError('E_NO_SPACE', `no room to ${doing}: ${path}`, { path }, error)
  }
  return new OciError('E_IO', `cannot ${doing}: ${(error as Error).message}`, { path }, error)
}
