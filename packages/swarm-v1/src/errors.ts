import { ReasonedError } from '@svc/internal-errors'

/**
 * What a {@link SwarmV1Error} is about; stable, for programs. Each code carries a finer `reason`.
 * - `E_SWARM_V1`: a BitTorrent v1 swarm failed; reasons `metadata-timeout`, `metadata`, `client`, `aborted`.
 */
export type SwarmV1ErrorCode = 'E_SWARM_V1'

/** The one error class of this package. */
export class SwarmV1Error extends ReasonedError<SwarmV1ErrorCode> {
  override readonly name = 'SwarmV1Error'
}
