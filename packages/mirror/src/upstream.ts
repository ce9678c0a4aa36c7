import type { OutgoingHttpHeaders } from 'node:http'
import type { LeftOut, LookOptions, UpstreamRepo } from '@svc/library/parts'

/** The mirror's source for missing files. Its errors have codes. */
export interface Upstream {
  look(repo: string, revision: string | undefined, options: LookOptions): Promise<UpstreamRepo>
  read(repo: UpstreamRepo, name: string): Promise<Uint8Array>
  artifactOf(repo: UpstreamRepo, name: string): Promise<{ readonly quant: string }>
  missingBytesOf(repo: UpstreamRepo, quant: string): Promise<number>
  bring(repo: UpstreamRepo, quant: string): Promise<RunningFetch>
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

/** Work of the program that brings a model in. */
export interface RunningFetch {
  readonly id: string
  /** The artifact, once it is known. */
  readonly manifest?: string
  /** The name that the artifact will get, `ns/name`. */
  readonly as?: string
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string }
}

/** What the program fetches, for itself and for clients of the mirrors. */
export interface RunningFetches {
  require(id: string): RunningFetch
  over(id: string): Promise<RunningFetch>
  /** Ends one that others may still want; `why` continues "the job". */
  giveUp(id: string, why: string): Promise<unknown>
  /** All that is under way about an artifact. */
  openOf(manifest: string): readonly RunningFetch[]
  /** The one that brings an artifact's blobs for any caller. */
  fetchOf(manifest: string): RunningFetch | undefined
}

type NotNowStatus = 404 | 429 | 503 | 507

/**
 * Why a response is impossible for now, with the time after which to retry, if that helps. Strangers read the message: it
 * names nothing of this machine and its configuration, nor what a source or a job said. The log has that.
 */
export class NotNowError extends Error {
  override readonly name = 'NotNowError'
  readonly status: NotNowStatus
  readonly code: string
  readonly retryAfterSeconds: number | undefined

  constructor(status: NotNowStatus, code: string, message: string, retryAfterSeconds?: number) {
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
