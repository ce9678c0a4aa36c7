import type { OutgoingHttpHeaders } from 'node:http'
import type { ErrorCode, Job } from '@svc/client/protocol'
import type { LeftOut, LookOptions, UpstreamRepo } from '@svc/library/parts'

/** The mirror's source for missing files. Its errors have the API's codes. */
export interface Upstream {
  look(repo: string, revision: string | undefined, options: LookOptions): Promise<UpstreamRepo>
  read(repo: UpstreamRepo, name: string): Promise<Uint8Array>
  artifactOf(repo: UpstreamRepo, name: string): Promise<{ readonly quant: string }>
  missingBytesOf(repo: UpstreamRepo, quant: string): Promise<number>
  bring(repo: UpstreamRepo, quant: string): Promise<Job>
  /** Whether the hub gave strangers these bytes: only then may they come from the store before their artifact is here. */
  hasBrought(repo: UpstreamRepo, name: string): boolean
}

/** An estimate of what a name and its entry take in memory. */
const ENTRY_BYTES = 600

/** An estimate of what a listing takes in memory. */
export function heapBytesOf({
  files,
  leftOut
}: {
  readonly files: ReadonlyMap<string, unknown>
  readonly leftOut: LeftOut | undefined
}): number {
  let bytes = ENTRY_BYTES
  for (const name of [...files.keys(), ...(leftOut?.reasons.keys() ?? [])]) bytes += ENTRY_BYTES + 2 * name.length
  return bytes
}

/** The daemon's jobs, as mirrors see them. */
export interface UpstreamJobs {
  require(id: string): Job
  over(id: string): Promise<Job>
  /** Ends a job that its owner may still want. */
  giveUp(id: string, why: string): Promise<Job>
  /** The jobs about an artifact that are not over. */
  openOf(manifest: string): readonly Job[]
}

const FETCHES: ReadonlySet<Job['kind']> = new Set(['ensure', 'import-bt'])

/** The job that fetches an artifact's blobs for any caller. */
export const fetchOf = (jobs: Pick<UpstreamJobs, 'openOf'>, manifest: string): Job | undefined =>
  jobs.openOf(manifest).find(({ kind }) => FETCHES.has(kind))

type NotNowStatus = 404 | 429 | 503 | 507

/**
 * Why a response is impossible for now, with the time after which to retry, if that helps. Strangers read the message: it
 * names nothing of this machine and its configuration, nor what a source or a job said. The log has that.
 */
export class NotNowError extends Error {
  override readonly name = 'NotNowError'
  readonly status: NotNowStatus
  readonly code: ErrorCode
  readonly retryAfterSeconds: number | undefined

  constructor(status: NotNowStatus, code: ErrorCode, message: string, retryAfterSeconds?: number) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }

  get headers(): OutgoingHttpHeaders {
    return this.retryAfterSeconds === undefined ? {} : { 'Retry-After': this.retryAfterSeconds }
  }
}

/** The error once a day's bytes for strangers are spent. */
export const dayIsSpent = (): NotNowError =>
  new NotNowError(507, 'E_NO_SPACE', 'this mirror fetches no more on demand today')

/** An error for a request whose data is on its way, with the status that all clients of hubs and registries retry. */
export const later = (what: string, retryAfterSeconds = 2): NotNowError =>
  new NotNowError(429, 'E_RATE_LIMITED', what, retryAfterSeconds)
