import type { FileInProgress } from '@svc/internal-models'

/** How far an operation is. Absent fields are unchanged. */
export interface WorkProgress {
  readonly filesDone?: number
  readonly filesTotal?: number
  readonly bytesDone?: number
  readonly bytesTotal?: number
  /** The artifact that it turned out to be about. */
  readonly manifest?: string
  /** A line for people about the current wait; `undefined` clears it. */
  readonly message?: string | undefined
  /** Remarks on the running work, for people who might want to cancel it. */
  readonly warnings?: readonly string[]
  /** Files in progress, at most {@link MAX_SHOWN_FILES}. */
  readonly files?: readonly FileInProgress[]
  readonly peers?: number
  readonly sources?: number
  readonly rateBytesPerSecond?: number
}

/** An import of many small files has hundreds of them in progress. */
export const MAX_SHOWN_FILES = 16

/** What an operation gets from whoever started it. */
export interface Work {
  /** Names it for others that ask what is under way. */
  readonly id: string
  /** Aborted when the result is not wanted any more: the operation then rejects with the reason. */
  readonly signal: AbortSignal
  readonly report: (progress: WorkProgress) => void
}

/** The operations that are under way. */
export interface RunningWork {
  /** How many. */
  readonly openCount: number
  /** Those about an artifact, as far as they know that yet. */
  openOf(manifest: string): readonly { readonly id: string }[]
}
