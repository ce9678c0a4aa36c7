import { ClassifyError } from '@svc/classify'
import { HubError } from '@svc/hub'
import { LibraryError } from '@svc/library/parts'
import { DaemonError } from '../../errors.ts'

/**
 * A failure of the hub, or of its listing, in the API's form: 502 before a job exists, a job error afterwards (spec
 * hub.6, err.3). Other errors (of the store, of an abort) pass unchanged.
 */
export function hubFailure(error: unknown): unknown {
  if (error instanceof ClassifyError && error.code === 'E_NOT_IMPORTABLE') {
    const { candidates } = error.details
    return new DaemonError('E_NOT_IMPORTABLE', error.message, { candidates, cause: error, status: 502 })
  }
  if (!(error instanceof HubError)) return error
  return new DaemonError(error.code, error.message, {
    cause: error,
    ...(error.code === 'E_INTERNAL' ? {} : { status: 502 })
  })
}

/** For `catch`. @throws the {@link hubFailure} */
export function throwHubFailure(error: unknown): never {
  throw hubFailure(error)
}

/** For `catch`: damaged or missing local state counts as absent. @throws errors other than the daemon's own */
export function orAbsent(error: unknown): undefined {
  if (!(error instanceof LibraryError)) throw error
}
