import { CodedError } from '@svc/internal-errors'

/** What a port answers as. */
export type MirrorKind = 'hub' | 'oci' | 's3'

/** `E_LISTEN`: a port cannot be listened at. `E_OPTION`: an option is wrong, or missing. */
export type MirrorErrorCode = 'E_LISTEN' | 'E_OPTION'

/** The models cannot be served. */
export class MirrorError extends CodedError<MirrorErrorCode, { readonly kind?: MirrorKind }> {
  override readonly name = 'MirrorError'
}
