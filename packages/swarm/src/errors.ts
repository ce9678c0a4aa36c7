import { ReasonedError } from '@svc/internal-errors'

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
export class SwarmError extends ReasonedError<SwarmErrorCode> {
  override readonly name = 'SwarmError'
}
