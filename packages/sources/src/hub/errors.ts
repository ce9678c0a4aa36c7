import { ClassifyError } from '@svc/classify'
import { HubError, type HubErrorCode } from '@svc/hub'
import { LibraryError, type LibraryErrorCode } from '@svc/library/parts'

/** The library's codes for failures of the hub. */
const CODES: Readonly<Record<HubErrorCode, LibraryErrorCode>> = {
  E_UNKNOWN_REF: 'E_NOT_AT_SOURCE',
  E_SOURCE_FORBIDDEN: 'E_SOURCE_FORBIDDEN',
  E_RATE_LIMITED: 'E_RATE_LIMITED',
  E_SOURCE_UNAVAILABLE: 'E_SOURCE_UNAVAILABLE',
  E_NOT_IMPORTABLE: 'E_BAD_LISTING',
  E_INTERNAL: 'E_IO'
}

/** A failure of the hub, or of its listing, as the library's error (spec hub.6). Other errors pass unchanged. */
export function hubFailure(error: unknown): unknown {
  if (error instanceof HubError) return new LibraryError(CODES[error.code], error.message, { cause: error })
  if (!(error instanceof ClassifyError) || error.code !== 'E_NOT_IMPORTABLE') return error
  const { candidates } = error.details
  return new LibraryError('E_BAD_LISTING', error.message, { candidates, cause: error })
}

/** Runs what asks the hub. @throws the {@link hubFailure} */
export async function asLibrary<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw hubFailure(error)
  }
}

/** For `catch`: damaged or missing local state counts as absent. @throws errors other than the library's own */
export function orAbsent(error: unknown): undefined {
  if (!(error instanceof LibraryError)) throw error
}
