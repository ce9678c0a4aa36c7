/** Why a reference, a digest or a part of them was refused; stable, for programs. */
export type RefErrorReason =
  | 'too-long'
  | 'scheme'
  | 'authority'
  | 'short-form'
  | 'namespace'
  | 'name'
  | 'no-selector'
  | 'bare-tag'
  | 'tag-format'
  | 'tag-banned'
  | 'quant-format'
  | 'digest-format'

/** `E_LENGTH` for the length rule, `E_PARSE` for every other grammar failure (API §7). */
export class RefError extends Error {
  override readonly name = 'RefError'
  readonly code: 'E_PARSE' | 'E_LENGTH'
  readonly reason: RefErrorReason

  constructor(reason: RefErrorReason, message: string) {
    super(message)
    this.reason = reason
    this.code = reason === 'too-long' ? 'E_LENGTH' : 'E_PARSE'
  }
}
