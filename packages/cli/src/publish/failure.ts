import type { PublishErrorCode } from '@svc/publish'
import { CliError } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Session } from '../session.ts'

const EXITS: Readonly<Record<PublishErrorCode, ExitCode>> = {
  E_BAD_TARGET: EXIT.usage,
  E_CREDENTIALS: EXIT.usage,
  E_DENIED: EXIT.source,
  E_NOT_FOUND: EXIT.notFound,
  E_CLOCK: EXIT.failed,
  E_RATE_LIMITED: EXIT.source,
  E_UNAVAILABLE: EXIT.source,
  E_DIGEST_MISMATCH: EXIT.verification,
  E_CHECK_FAILED: EXIT.verification,
  E_NO_SPACE: EXIT.failed,
  E_IO: EXIT.failed
}

/** Loads `@svc/publish` lazily and maps its errors to exit codes. On Ctrl-C the error says how to resume. @throws CliError */
export async function withPublish<T>(
  session: Session,
  work: (lib: typeof import('@svc/publish')) => Promise<T>
): Promise<T> {
  const lib = await import('@svc/publish')
  try {
    return await work(lib)
  } catch (cause) {
    if (session.signal.aborted) {
      const hint = 'run the same command again to resume'
      throw new CliError(EXIT.interrupted, 'interrupted', { code: 'E_INTERRUPTED', hint, cause })
    }
    if (!(cause instanceof lib.PublishError)) throw cause
    throw new CliError(EXITS[cause.code], cause.message, { code: cause.code, cause })
  }
}
