/**
 * What a {@link SwarmError} is about; stable, for programs. Each code carries a finer `reason`.
 * - `E_PROTOCOL`: a peer broke the wire protocol or a bound; the connection is over.
 * - `E_WEBSEED`: a webseed answered something that BEP 19 and the torrent do not allow.
 * - `E_STORAGE`: the storage failed or refused; the original error is the cause.
 * - `E_ADDRESS`: an address or URL that must not be contacted.
 * - `E_OPTION`: an option of the engine makes no sense.
 * - `E_CLOSED`: the torrent was removed or the engine closed.
 */
export type SwarmErrorCode = 'E_PROTOCOL' | 'E_WEBSEED' | 'E_STORAGE' | 'E_ADDRESS' | 'E_OPTION' | 'E_CLOSED'

/** The one error class of this package. */
export class SwarmError extends Error {
  override readonly name = 'SwarmError'
  readonly code: SwarmErrorCode
  /** The one defect found, e.g. `piece-length`; stable, for programs. */
  readonly reason: string
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: SwarmErrorCode,
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
