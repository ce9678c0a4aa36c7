import type { ErrorCode } from '@svc/client/protocol'
import type { OciErrorCode } from '@svc/oci'
import { DaemonError } from '../../errors.ts'

/** The library, which is loaded with the first use. */
export type Oci = typeof import('@svc/oci')

/**
 * The API's codes for failures of a layout, an archive or a registry. Complete: when the library gains a code, it needs
 * a row.
 */
const CODES: Readonly<Record<OciErrorCode, ErrorCode>> = {
  E_FORMAT: 'E_NOT_IMPORTABLE',
  E_UNSUPPORTED: 'E_NOT_IMPORTABLE',
  E_NOT_FOUND: 'E_UNKNOWN_REF',
  E_DENIED: 'E_SOURCE_FORBIDDEN',
  E_CREDENTIALS: 'E_SOURCE_FORBIDDEN',
  E_RATE_LIMITED: 'E_RATE_LIMITED',
  E_UNAVAILABLE: 'E_SOURCE_UNAVAILABLE',
  E_DIGEST_MISMATCH: 'E_NOT_IMPORTABLE',
  E_BAD_REFERENCE: 'E_BAD_REQUEST',
  E_BAD_TARGET: 'E_BAD_REQUEST',
  E_NO_SPACE: 'E_NO_SPACE',
  E_IO: 'E_SOURCE_UNAVAILABLE'
}

/** Converts an error of `@svc/oci` to that of a job or a response; others pass unchanged. */
export function ociFailure(oci: Oci, error: unknown): unknown {
  if (!(error instanceof oci.OciError)) return error
  const { candidates } = error.details
  return new DaemonError(CODES[error.code], error.message, {
    cause: error,
    ...(candidates !== undefined && { candidates })
  })
}
