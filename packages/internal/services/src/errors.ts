import { CodedError } from '@svc/internal-errors'

/** `E_USAGE`: what was asked for cannot be a service; `E_FAILED`: the manager, or a program of it, refused. */
export class ServiceError extends CodedError<'E_USAGE' | 'E_FAILED', { readonly hint?: string }> {
  override readonly name = 'ServiceError'
}
