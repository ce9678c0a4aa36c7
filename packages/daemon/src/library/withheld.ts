import type { SwarmConfig } from '../config/config.ts'
import type { ArtifactState } from './artifacts.ts'

type Kept = Pick<ArtifactState, 'private' | 'restricted'>

/**
 * Why an artifact is kept from strangers; undefined when it may be given to them. The one place that decides this: for seeding and
 * sharing, for fetching (quietly then: nobody hears of it but the sources that the request names), for BitTorrent v1 swarms, and for
 * whatever else reaches beyond this machine (spec swarm.4, add.11).
 */
export function withheldReason(
  state: Kept | undefined,
  { seedRestricted }: Pick<SwarmConfig, 'seedRestricted'>
): string | undefined {
  if (state?.private === true) return 'it is private; svc private REF --off gives it to others'
  if (state?.restricted === true && !seedRestricted)
    return 'it was fetched with a token, a login or a key; [swarm] seed_restricted = true in the configuration shares it all the same'
  return undefined
}

/** Why an artifact is not given to others now; undefined when it may be. */
export const heldBackReason = (state: Kept, config: SwarmConfig): string | undefined =>
  config.seed ? withheldReason(state, config) : 'sharing is off: [swarm] seed = false in the configuration'
