import { CliError } from './errors.ts'
import { exitOf } from './exit-codes.ts'
import type { Session } from './session.ts'

/** Runs work with layouts or registries. @throws CliError for its errors; after Ctrl-C it says how to resume */
export async function withOci<T>(session: Session, work: (oci: typeof import('@svc/oci')) => Promise<T>): Promise<T> {
  const oci = await import('@svc/oci')
  return resumable(session, work(oci), (error) => error instanceof oci.OciError)
}

/** Runs work with folders and buckets. @throws as {@link withOci} */
export async function withPublish<T>(
  session: Session,
  work: (lib: typeof import('@svc/publish')) => Promise<T>
): Promise<T> {
  const lib = await import('@svc/publish')
  return resumable(session, work(lib), (error) => error instanceof lib.PublishError)
}

interface OwnError extends Error {
  readonly code: string
  readonly details: { readonly candidates?: readonly string[] }
}

async function resumable<T>(
  { signal }: Session,
  work: Promise<T>,
  isOwn: (error: unknown) => error is OwnError
): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (signal.aborted) {
      const hint = 'run the same command again to resume'
      throw new CliError('interrupted', 'interrupted', { code: 'E_INTERRUPTED', hint, cause })
    }
    if (!isOwn(cause)) throw cause
    const { code, message, details } = cause
    throw new CliError(exitOf(code), message, { code, candidates: details.candidates, cause })
  }
}
