/** What is looked at of a peer. */
export interface PeerPlace {
  readonly trusted: boolean
  /** undefined: it names none. */
  readonly zone: string | undefined
}

/**
 * Whether the way to a peer is one to be spared. Without a zone of our own no way is; else to peers of another zone, and to those
 * outside the trusted ranges. A trusted peer that names no zone counts as near. Pure.
 */
export function isFar(peer: PeerPlace, ownZone: string | undefined): boolean {
  if (ownZone === undefined) return false
  return !peer.trusted || (peer.zone !== undefined && peer.zone !== ownZone)
}
