import type { HubError } from './errors.ts'

/**
 * What to do after a failed attempt: `retry` again after a pause · `wait` the server asked to wait · `final` a retry is
 * useless · `stale-url` the signed URL no longer serves: resolve again · `wrong` the bytes offered do not match the
 * listing · `changed` the representation changed between two ranges · `no-ranges` the server ignores Range: read the
 * whole file in one stream.
 */
export type TroubleKind = 'retry' | 'wait' | 'final' | 'stale-url' | 'wrong' | 'changed' | 'no-ranges'

/** A failed attempt, inside this package: its kind, and the error to report if it was the last one. */
export class Trouble extends Error {
  override readonly name = 'Trouble'
  readonly kind: TroubleKind
  readonly error: HubError
  /** The wait that the server requested, in milliseconds. */
  readonly waitMs: number | undefined

  constructor(kind: TroubleKind, error: HubError, waitMs?: number) {
    super(error.message, { cause: error })
    this.kind = kind
    this.error = error
    this.waitMs = waitMs
  }
}
