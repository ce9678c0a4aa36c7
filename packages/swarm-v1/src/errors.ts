/**
 * What a {@link SwarmV1Error} is about; stable, for programs. Each code carries a finer `reason`.
 * - `E_SWARM_V1`: a BitTorrent v1 swarm failed; reasons `metadata-timeout`, `metadata`, `client`, `aborted`.
 */
export type SwarmV1ErrorCode = 'E_SWARM_V1'

/** The one error class of this package. */
export class SwarmV1Error extends Error {
  override readonly name = 'SwarmV1Error'
  readonly code: SwarmV1ErrorCode
  /** The defect, e.g. `piece-length`; stable, for programs. */
  readonly reason: string
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: SwarmV1ErrorCode,
    reason: string,
    message: string,
    options: { readonly details?: Readonly<Record<string, unknown>>; readonly cause?: unknown } = {}
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.reason = reason
    this.details = options.details ?? {}
  }
}
