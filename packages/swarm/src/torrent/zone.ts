import type { Peer } from '../peer/peer.ts'

/** Whether a peer is in another zone, or not trusted. Never if this engine has none; a trusted peer without one is near. Pure. */
export function isFar(peer: Pick<Peer, 'trusted' | 'zone'>, ownZone: string | undefined): boolean {
  if (ownZone === undefined) return false
  return !peer.trusted || (peer.zone !== undefined && peer.zone !== ownZone)
}
