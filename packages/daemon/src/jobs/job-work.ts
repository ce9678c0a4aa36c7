import type { ActiveFile, ErrorBody, GcResult, ImportResult, JobKind, VerifyReport } from '@svc/client/protocol'

/** What a job is when it is accepted. */
export interface JobStart {
  readonly kind: JobKind
  readonly ref: string
  readonly as?: string
  readonly target?: string
  readonly manifest?: string
  /** It only counts. */
  readonly dryRun?: boolean
  readonly filesTotal?: number
  readonly bytesTotal?: number
}

/** What a finished job adds. */
export interface JobOutcome {
  readonly manifest?: string
  readonly result?: ImportResult | GcResult
  readonly verify?: VerifyReport
  /** Ends the job as `failed` with this error, the other fields kept. */
  readonly error?: ErrorBody
}

export interface JobProgress {
  readonly filesDone?: number
  readonly filesTotal?: number
  readonly bytesDone?: number
  readonly bytesTotal?: number
  readonly manifest?: string
  /** One line for people about what the job waits for; `undefined` clears it. */
  readonly message?: string | undefined
  /** Sentences about what is being done, for those who would rather stop it. */
  readonly warnings?: readonly string[]
  /** Files in flight; the first sixteen are shown. */
  readonly files?: readonly ActiveFile[]
  readonly peers?: number
  readonly sources?: number
  readonly rateBytesPerSecond?: number
}

export interface JobContext {
  /** Aborted when somebody cancels the job, or the daemon stops. What it threw is then the job's error: `E_ABORTED`. */
  readonly signal: AbortSignal
  readonly id: string
  update(progress: JobProgress): void
}

export type JobWork = (context: JobContext) => Promise<JobOutcome>
