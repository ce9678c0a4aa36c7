/** The properties of a peer that matter here. */
export interface PeerPlace {
  readonly trusted: boolean
  /** Undefined if it names none. */
  readonly zone: string | undefined
}

/**
 * Whether traffic with a peer should be avoided. Without a zone of our own never; otherwise for peers of another zone, and for those
 * outside the trusted ranges. A trusted peer that names no zone counts as near. Pure.
 */
export function isFar(peer: PeerPlace, ownZone: string | undefined): boolean {
  if (ownZone === undefined) return false
  return !peer.trusted || (peer.zone !== undefined && peer.zone !== ownZone)
}
