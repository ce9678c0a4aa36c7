import { CodedError } from '@svc/internal-errors'
import type { MirrorKind } from './mirrors.ts'

/** `E_LISTEN`: a port cannot be listened at. `E_OPTION`: an option is wrong, or missing. */
export type MirrorErrorCode = 'E_LISTEN' | 'E_OPTION'

/** The models cannot be served. */
export class MirrorError extends CodedError<MirrorErrorCode, { readonly kind?: MirrorKind }> {
  override readonly name = 'MirrorError'
}
