import { ReasonedError } from '@svc/internal-errors'

/**
 * `E_SIGNATURE`: the signature says nothing that can be relied on. `E_INVALID`: what was given to verify or sign with is
 * not of the expected form.
 */
export type SignatureErrorCode = 'E_SIGNATURE' | 'E_INVALID'

/** The first defect found; stable, for programs. */
export type SignatureErrorReason =
  /** Not a bundle or statement of this kind, or larger than allowed. */
  | 'malformed'
  /** None of the given keys made it. */
  | 'key'
  /** Its certificates lead to none of the given ones, are not valid now, or may not sign. */
  | 'certificate'
  /** The transparency log, the certificate or the time does not hold against the trust root. */
  | 'keyless'
  /** None of the given identities made it. */
  | 'identity'
  /** Nothing given could verify this kind of signature. */
  | 'untrusted'
  /** Other bytes were signed. */
  | 'signature'
  /** A key, certificate or trust root that was given. */
  | 'input'

/** The one error class of this package. */
export class SignatureError extends ReasonedError<SignatureErrorCode, SignatureErrorReason> {
  override readonly name = 'SignatureError'
}

/** What the signature lacks. */
export const refused = (reason: SignatureErrorReason, what: string, cause?: unknown): SignatureError =>
  new SignatureError('E_SIGNATURE', reason, what, { cause })

export const malformed = (what: string, cause?: unknown): SignatureError =>
  refused('malformed', `not a signature of a model: ${what}`, cause)

/** Reads something that the caller gave. @throws SignatureError `input` */
export function given<T>(read: () => T, otherwise: string): T {
  try {
    return read()
  } catch (cause) {
    throw new SignatureError('E_INVALID', 'input', otherwise, { cause })
  }
}
