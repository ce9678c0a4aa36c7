import type { OciErrorCode } from '@svc/oci'
import { CliError } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Session } from '../session.ts'

const EXITS: Readonly<Record<OciErrorCode, ExitCode>> = {
  E_FORMAT: EXIT.failed,
  E_UNSUPPORTED: EXIT.failed,
  E_NOT_FOUND: EXIT.notFound,
  E_DENIED: EXIT.source,
  E_CREDENTIALS: EXIT.source,
  E_RATE_LIMITED: EXIT.source,
  E_UNAVAILABLE: EXIT.source,
  E_DIGEST_MISMATCH: EXIT.verification,
  E_BAD_REFERENCE: EXIT.usage,
  E_BAD_TARGET: EXIT.usage,
  E_NO_SPACE: EXIT.failed,
  E_IO: EXIT.failed
}

/**
 * Runs work with layouts or registries. Converts its errors to those of `svc`; after Ctrl-C it explains how to resume.
 * @throws CliError
 */
export async function withOci<T>(session: Session, work: (oci: typeof import('@svc/oci')) => Promise<T>): Promise<T> {
  const oci = await import('@svc/oci')
  try {
    return await work(oci)
  } catch (cause) {
    if (session.signal.aborted) {
      const hint = 'run the same command again to resume'
      throw new CliError(EXIT.interrupted, 'interrupted', { code: 'E_INTERRUPTED', hint, cause })
    }
    if (!(cause instanceof oci.OciError)) throw cause
    const { candidates } = cause.details
    throw new CliError(EXITS[cause.code], cause.message, { code: cause.code, candidates, cause })
  }
}
