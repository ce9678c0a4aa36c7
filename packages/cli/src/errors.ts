import type { Job } from '@svc/client'
import { CodedError } from '@svc/internal-errors'
import { type Exit, exitOf } from './exit-codes.ts'
import { formatBytes } from './format.ts'

export interface CliErrorDetails {
  readonly code?: string
  readonly candidates?: readonly string[] | undefined
  /** What to type instead. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

/** A failure that is printed as `svc: <message>`, with its exit code. */
export class CliError extends CodedError<string> {
  override readonly name = 'CliError'
  readonly exit: Exit
  readonly candidates: readonly string[]
  readonly hint: string | undefined

  constructor(exit: Exit, message: string, details: CliErrorDetails = {}) {
    super(details.code ?? (exit === 'usage' ? 'E_USAGE' : 'E_FAILED'), message, {}, details.cause)
    this.exit = exit
    this.candidates = details.candidates ?? []
    this.hint = details.hint
  }
}

/** A command run by `svc` has ended: nothing is printed, and its exit code is passed on. */
export class ChildEnded extends Error {
  override readonly name = 'ChildEnded'
  readonly exitCode: number

  constructor(exitCode: number) {
    super(`the command ended with ${exitCode}`)
    this.exitCode = exitCode
  }
}

export const usage = (message: string, hint?: string): CliError => new CliError('usage', message, { hint })

const REGISTRY_LOGIN =
  'the daemon uses the logins of its own user: ~/.docker/config.json, or what DOCKER_CONFIG and REGISTRY_AUTH_FILE name in its environment'

export function jobFailure(job: Job): CliError {
  const { kind, ref, error } = job
  if (error === undefined) return new CliError('failed', 'the job failed without a reason')
  const { code, message, candidates } = error
  const hint =
    kind === 'import-oci' && code === 'E_SOURCE_FORBIDDEN'
      ? REGISTRY_LOGIN
      : kind === 'ensure' && code === 'E_NO_SPACE' && candidates !== undefined
        ? `svc pull ${ref.replace('svc:///', '')} --evict`
        : code === 'E_NOT_IMPORTABLE' && message.includes('"malformed"')
          ? '--force imports it all the same; it is not shared then'
          : keptHint(job)
  return new CliError(exitOf(code), message, { code, candidates, hint })
}

/** What a download has fetched before it failed, and how it goes on. */
function keptHint({ id, kind, bytesDone = 0, bytesTotal = 0 }: Job): string | undefined {
  const isDownload =
    kind === 'ensure' || kind === 'companions' || (kind?.startsWith('import-') && kind !== 'import-local')
  if (!isDownload || bytesDone === 0) return undefined
  return `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)} are kept: the same command goes on from there, or svc resume ${id.slice(0, 8)}`
}
