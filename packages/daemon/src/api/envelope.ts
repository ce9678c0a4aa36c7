import { CasError } from '@svc/cas'
import { ClassifyError } from '@svc/classify'
import { type ErrorCode, type ErrorEnvelope, errorStatus } from '@svc/client/protocol'
import { RefError } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { CorruptStateError } from '../library/strict.ts'

/** The one shape of every error (spec err.1). */
export const envelope = (code: ErrorCode, message: string, candidates?: readonly string[]): ErrorEnvelope => ({
  error: { code, message, ...(candidates !== undefined && { candidates: [...candidates] }) }
})

/** An error as it goes over the wire, as a response or within a job. */
export interface WireError {
  readonly status: number
  readonly envelope: ErrorEnvelope
  /** True where the client is told less than is known: the error itself belongs into the log. */
  readonly hidden: boolean
}

const wire = (
  code: ErrorCode,
  message: string,
  more: { status?: number | undefined; candidates?: readonly string[] | undefined; hidden?: boolean } = {}
): WireError => ({
  status: more.status ?? errorStatus(code),
  envelope: envelope(code, message, more.candidates),
  hidden: more.hidden ?? false
})

/**
 * Maps whatever was thrown to a code of the table. An error that nobody foresaw is `E_INTERNAL` with a constant message:
 * its text may hold a path, a header or a secret, so it goes to the log alone.
 */
export function toWireError(error: unknown): WireError {
  if (error instanceof DaemonError) {
    const { code, message, status, candidates } = error
    return wire(code, message, { status, candidates, hidden: code === 'E_INTERNAL' })
  }
  if (error instanceof RefError) {
    return wire(error.code, error.message, { candidates: error.candidates.length > 0 ? error.candidates : undefined })
  }
  if (error instanceof CorruptStateError)
    return wire('E_INTERNAL', `the state is unreadable: ${error.message}`, { hidden: true })
  if (error instanceof ClassifyError) {
    if (error.code === 'E_NOT_IMPORTABLE' || error.code === 'E_TAR_LIMIT')
      return wire('E_NOT_IMPORTABLE', error.message)
    if (error.code === 'E_BAD_NAME') return wire('E_BAD_REQUEST', error.message)
  }
  if (error instanceof CasError) {
    if (error.code === 'E_NO_SPACE') return wire('E_NO_SPACE', error.message)
    if (error.code === 'E_ABORTED') return wire('E_ABORTED', 'the operation was broken off')
    if (error.code === 'E_DIGEST_MISMATCH' || error.code === 'E_SIZE_MISMATCH')
      return wire('E_NOT_IMPORTABLE', error.message)
    if (error.code === 'E_IO') {
      const errno = (error.cause as NodeJS.ErrnoException | undefined)?.code ?? 'unknown error'
      return wire(
        'E_INTERNAL',
        `an input/output error (${errno}) while the store tried to: ${error.details.operation ?? 'work'}`,
        { hidden: true }
      )
    }
  }
  const errno = (error as NodeJS.ErrnoException | undefined)?.code
  if (errno === 'ENOSPC' || errno === 'EDQUOT')
    return wire('E_NO_SPACE', 'no room on the file system of the store', { hidden: true })
  return wire('E_INTERNAL', 'the daemon failed unexpectedly; its log has the details', { hidden: true })
}
