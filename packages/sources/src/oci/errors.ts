import { LibraryError, type LibraryErrorCode } from '@svc/library/parts'
import { OciError, type OciErrorCode } from '@svc/oci'

/** The library's codes for failures of a layout, an archive or a registry. */
const CODES: Readonly<Record<OciErrorCode, LibraryErrorCode>> = {
  E_FORMAT: 'E_NOT_IMPORTABLE',
  E_UNSUPPORTED: 'E_NOT_IMPORTABLE',
  E_NOT_FOUND: 'E_NOT_AT_SOURCE',
  E_DENIED: 'E_SOURCE_FORBIDDEN',
  E_CREDENTIALS: 'E_SOURCE_FORBIDDEN',
  E_RATE_LIMITED: 'E_RATE_LIMITED',
  E_UNAVAILABLE: 'E_SOURCE_UNAVAILABLE',
  E_DIGEST_MISMATCH: 'E_NOT_IMPORTABLE',
  E_BAD_REFERENCE: 'E_INVALID',
  E_BAD_TARGET: 'E_INVALID',
  E_NO_SPACE: 'E_NO_SPACE',
  E_IO: 'E_SOURCE_UNAVAILABLE'
}

/** Runs what may throw an OciError. @throws LibraryError in its place; others unchanged */
export async function asLibrary<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof OciError)) throw error
    const { candidates } = error.details
    throw new LibraryError(CODES[error.code], error.message, { candidates, cause: error })
  }
}
