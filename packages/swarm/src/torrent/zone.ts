/** The properties of a peer that decide whether it is far. */
export interface PeerPlace {
  readonly trusted: boolean
  /** Undefined if it sent none. */
  readonly zone: string | undefined
}

/**
 * Whether to avoid traffic with a peer: it is in another zone, or outside the trusted ranges. Never if this engine has no zone; a
 * trusted peer without a zone counts as near. Pure.
 */
export function isFar(peer: PeerPlace, ownZone: string | undefined): boolean {
  if (ownZone === undefined) return false
  return !peer.trusted || (peer.zone !== undefined && peer.zone !== ownZone)
}
