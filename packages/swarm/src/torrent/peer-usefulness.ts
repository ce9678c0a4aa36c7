/** What is looked at; times in milliseconds of one monotonic clock. */
export interface PeerUse {
  readonly incoming: boolean
  readonly amInterested: boolean
  readonly peerInterested: boolean
  /** When it last asked us for a block or was sent one; at first, when it connected. */
  readonly uploadActiveAt: number
  /** When it last sent us a block; at first, when it connected. */
  readonly downloadActiveAt: number
}

/** A peer that wants nothing and gives nothing may be displaced after this time. */
export const INDIFFERENT_MS = 15_000
/** One that says it is interested, or has what we want, may wait longer for its turn. */
export const WAITING_MS = 120_000

/**
 * For how many milliseconds a peer has been of no use beyond what it is allowed; 0: it is of use, or has time left. Only for
 * peers that connected to us: the others we chose ourselves. Pure.
 */
export function uselessForMs(peer: PeerUse, nowMs: number): number {
  if (!peer.incoming) return 0
  const idleMs = nowMs - Math.max(peer.uploadActiveAt, peer.downloadActiveAt)
  const allowedMs = peer.amInterested || peer.peerInterested ? WAITING_MS : INDIFFERENT_MS
  return Math.max(0, idleMs - allowedMs)
}
