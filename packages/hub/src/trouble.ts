import type { HubError } from './errors.ts'

/**
 * What a failed try means for the next one:
 * `retry` again after a pause · `wait` the server asked for patience · `final` no use in trying ·
 * `stale-url` the signed URL no longer serves: resolve again · `wrong` the bytes on offer are not those of the listing ·
 * `changed` the representation changed between two ranges · `no-ranges` the server ignores Range: read the whole file in
 * one stream.
 */
export type TroubleKind = 'retry' | 'wait' | 'final' | 'stale-url' | 'wrong' | 'changed' | 'no-ranges'

/** A failed try, inside this package: its kind, and the error to report when it was the last one. */
export class Trouble extends Error {
  override readonly name = 'Trouble'
  readonly kind: TroubleKind
  readonly error: HubError
  /** What the server asked us to wait, in milliseconds. */
  readonly waitMs: number | undefined

  constructor(kind: TroubleKind, error: HubError, waitMs?: number) {
    super(error.message, { cause: error })
    this.kind = kind
    this.error = error
    this.waitMs = waitMs
  }
}
