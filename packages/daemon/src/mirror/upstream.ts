import type { ErrorCode, Job } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'

/** A file that could be brought in. */
export interface UpstreamFile {
  readonly name: string
  readonly sizeBytes: number
  readonly sha256: Sha256Digest | undefined
  readonly gitBlobSha1: string | undefined
  /** Brought in with its artifact; the others are read alone. */
  readonly isLarge: boolean
}

/** A repository of the hub upstream at a commit: what could be brought in. */
export interface UpstreamRepo {
  readonly repo: string
  readonly commit: string
  readonly files: ReadonlyMap<string, UpstreamFile>
}

/** Where a mirror gets what it does not have. Its errors have codes of the API. */
export interface Upstream {
  look(repo: string, revision: string | undefined): Promise<UpstreamRepo>
  read(repo: UpstreamRepo, name: string): Promise<Uint8Array>
  artifactOf(repo: UpstreamRepo, name: string): Promise<{ readonly quant: string; readonly missingBytes: number }>
  bring(repo: UpstreamRepo, quant: string): Promise<Job>
}

/** The jobs that bring artifacts in. */
export interface UpstreamJobs {
  over(id: string): Promise<Job>
  cancel(id: string): Promise<Job>
}

/** Why something is not given now: with the time after which to ask again, where that helps. */
export class NotNowError extends Error {
  override readonly name = 'NotNowError'
  readonly status: 429 | 503 | 507
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined

  constructor(status: 429 | 503 | 507, code: ErrorCode, message: string, retryAfterSeconds?: number) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Come again soon: what was asked for is on its way. The status that every client of hubs and registries takes for that. */
export const later = (what: string, retryAfterSeconds = 2): NotNowError =>
  new NotNowError(429, 'E_RATE_LIMITED', what, retryAfterSeconds)
