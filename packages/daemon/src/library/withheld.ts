import type { SwarmConfig } from '../config/config.ts'
import type { ArtifactState } from './artifacts.ts'

type Kept = Pick<ArtifactState, 'private' | 'restricted'>

/**
 * Why an artifact must not be given to strangers; undefined when it may be. The only place that decides this: for
 * seeding and sharing, for fetching (quietly then: only the sources named in the request learn of it), for BitTorrent
 * v1 swarms, and for everything else that reaches other machines (spec swarm.4, add.11).
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

/** Why an artifact is not shared now; undefined when it may be. */
export const heldBackReason = (state: Kept, config: SwarmConfig): string | undefined =>
  config.seed ? withheldReason(state, config) : 'sharing is off: [swarm] seed = false in the configuration'
