import type {
  ErrorBody,
  EvictResult,
  GcResult,
  ImportResult,
  JobKind,
  OutdatedResult,
  VerifyReport
} from '@svc/client/protocol'
import type { Work } from '@svc/library/parts'
import type { DeepReadonly } from '../deep-readonly.ts'

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
  readonly result?: DeepReadonly<ImportResult> | GcResult | DeepReadonly<EvictResult> | DeepReadonly<OutdatedResult>
  readonly verify?: VerifyReport
  /** Ends the job as `failed` with this error; the other fields are kept. */
  readonly error?: ErrorBody
}

/** Aborted when the job is cancelled or the daemon stops: the job then fails with the reason, `E_ABORTED`. */
export type JobWork = (work: Work) => Promise<JobOutcome>
