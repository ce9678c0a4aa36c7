/** The properties of a peer that decide whether it is far. */
export interface PeerPlace {
  readonly trusted: boolean
  /** Undefined if it sent none. */
  readonly zone: string | undefined
}

/** Whether a peer is in another zone, or not trusted. Never if this engine has none; a trusted peer without one is near. Pure. */
export function isFar(peer: PeerPlace, ownZone: string | undefined): boolean {
  if (ownZone === undefined) return false
  return !peer.trusted || (peer.zone !== undefined && peer.zone !== ownZone)
}
