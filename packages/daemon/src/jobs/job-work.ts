import type {
  ActiveFile,
  ErrorBody,
  EvictResult,
  GcResult,
  ImportResult,
  JobKind,
  OutdatedResult,
  VerifyReport
} from '@svc/client/protocol'

export interface JobStart {
  readonly kind: JobKind
  readonly ref: string
  readonly as?: string
  readonly target?: string
  readonly manifest?: string
  /** Whether it only counts. */
  readonly dryRun?: boolean
  readonly filesTotal?: number
  readonly bytesTotal?: number
  /** The separate lane of the mirrors' clients, which the owner's jobs never wait for. Default: the lane of the kind. */
  readonly lane?: 'demand'
}

/** The fields that a finished job adds. */
export interface JobOutcome {
  readonly manifest?: string
  readonly result?: ImportResult | GcResult | EvictResult | OutdatedResult
  readonly verify?: VerifyReport
  /** Ends the job as `failed` with this error; the other fields are kept. */
  readonly error?: ErrorBody
}

export interface JobProgress {
  readonly filesDone?: number
  readonly filesTotal?: number
  readonly bytesDone?: number
  readonly bytesTotal?: number
  readonly manifest?: string
  /** A line for people about the job's current wait; `undefined` clears it. */
  readonly message?: string | undefined
  /** Remarks on the running work, for people who might want to cancel it. */
  readonly warnings?: readonly string[]
  /** Files in progress; the first sixteen are shown. */
  readonly files?: readonly ActiveFile[]
  readonly peers?: number
  readonly sources?: number
  readonly rateBytesPerSecond?: number
}

export interface JobContext {
  /** Aborted when the job is cancelled or the daemon stops. The job then fails with the reason: `E_ABORTED`. */
  readonly signal: AbortSignal
  readonly id: string
  update(progress: JobProgress): void
}

export type JobWork = (context: JobContext) => Promise<JobOutcome>
