/**
 * What a {@link SwarmError} is about; stable, for programs. Each code carries a finer `reason`.
 * - `E_PROTOCOL`: a peer violated the wire protocol or a limit; the connection was closed.
 * - `E_WEBSEED`: a webseed sent an answer that violates BEP 19 or does not fit the torrent.
 * - `E_STORAGE`: the storage failed or refused the bytes; the original error is the `cause`.
 * - `E_ADDRESS`: an address or URL that must not be contacted.
 * - `E_OPTION`: an option of the engine is invalid.
 * - `E_CLOSED`: the torrent was removed or the engine closed.
 */
export type SwarmErrorCode = 'E_PROTOCOL' | 'E_WEBSEED' | 'E_STORAGE' | 'E_ADDRESS' | 'E_OPTION' | 'E_CLOSED'

/** The one error class of this package. */
export class SwarmError extends Error {
  override readonly name = 'SwarmError'
  readonly code: SwarmErrorCode
  /** The defect, e.g. `piece-length`; stable, for programs. */
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
