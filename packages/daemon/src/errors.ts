import type { ErrorCode } from '@svc/client/protocol'
import { CodedError } from '@svc/internal-errors'

/** The start was refused: configuration, root, lock or socket. The message is for the person at the terminal. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}

/** The configuration is invalid. */
export class ConfigError extends StartError {
  override readonly name = 'ConfigError'
}

/** Further properties of a {@link DaemonError}. */
export interface DaemonErrorDetails {
  /** Known alternatives, shown in the envelope (spec err.1). */
  readonly candidates?: readonly string[] | undefined
  /** HTTP status if it differs from the code's status in the table, e.g. 502 for the `E_UNKNOWN_REF` of a hub. */
  readonly status?: number | undefined
  readonly cause?: unknown
}

/** A failure with a code of spec err.2. Clients see the message: no secret, and no path that they did not send. */
export class DaemonError extends CodedError<ErrorCode> {
  override readonly name = 'DaemonError'
  readonly candidates: readonly string[] | undefined
  readonly status: number | undefined

  constructor(code: ErrorCode, message: string, details: DaemonErrorDetails = {}) {
    super(code, message, {}, details.cause)
    this.candidates = details.candidates
    this.status = details.status
  }
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function spokenBytes(sizeBytes: number): string {
  const unit = sizeBytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(sizeBytes) / 10))
  return `${unit === 0 ? sizeBytes : (sizeBytes / 1024 ** unit).toFixed(1)} ${UNITS[unit]}`
}

/** The error for a disk without enough space. */
export const noSpace = (neededBytes: number, freeBytes: number): DaemonError =>
  new DaemonError(
    'E_NO_SPACE',
    `${spokenBytes(neededBytes)} are needed and ${spokenBytes(freeBytes)} are free on the disk of the store: free some space (svc rm and svc gc), or move the store to another disk (svc move)`
  )
