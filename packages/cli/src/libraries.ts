import type { OciErrorCode } from '@svc/oci'
import type { PublishErrorCode } from '@svc/publish'
import { CliError } from './errors.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import type { Session } from './session.ts'

const OCI_EXITS: Readonly<Record<OciErrorCode, ExitCode>> = {
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

const PUBLISH_EXITS: Readonly<Record<PublishErrorCode, ExitCode>> = {
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

/** Runs work with layouts or registries. @throws CliError for its errors; after Ctrl-C it says how to resume */
export async function withOci<T>(session: Session, work: (oci: typeof import('@svc/oci')) => Promise<T>): Promise<T> {
  const oci = await import('@svc/oci')
  return resumable(session, work(oci), (cause) => {
    if (!(cause instanceof oci.OciError)) return undefined
    const { code, message, details } = cause
    return new CliError(OCI_EXITS[code], message, { code, candidates: details.candidates, cause })
  })
}

/** Runs work with folders and buckets. @throws as {@link withOci} */
export async function withPublish<T>(
  session: Session,
  work: (lib: typeof import('@svc/publish')) => Promise<T>
): Promise<T> {
  const lib = await import('@svc/publish')
  return resumable(session, work(lib), (cause) => {
    if (!(cause instanceof lib.PublishError)) return undefined
    return new CliError(PUBLISH_EXITS[cause.code], cause.message, { code: cause.code, cause })
  })
}

async function resumable<T>(
  { signal }: Session,
  work: Promise<T>,
  explain: (cause: unknown) => CliError | undefined
): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (!signal.aborted) throw explain(cause) ?? cause
    const hint = 'run the same command again to resume'
    throw new CliError(EXIT.interrupted, 'interrupted', { code: 'E_INTERRUPTED', hint, cause })
  }
}
