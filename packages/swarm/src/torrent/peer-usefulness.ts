/** The input of the decision; times are in milliseconds of one monotonic clock. */
export interface PeerUse {
  readonly incoming: boolean
  readonly amInterested: boolean
  readonly peerInterested: boolean
  /** When it last requested a block or was sent one; initially, when it connected. */
  readonly uploadActiveAt: number
  /** When it last sent us a block; initially, when it connected. */
  readonly downloadActiveAt: number
}

/** A peer that neither wants nor offers anything may be displaced after this time. */
export const INDIFFERENT_MS = 15_000
/** A peer that is interested, or has what we want, may wait this long for its turn. */
export const WAITING_MS = 120_000

/**
 * For how many milliseconds a peer has been useless beyond what it is allowed; 0 while it is useful or has time left.
 * Applies only to incoming peers; we chose the others ourselves. Pure.
 */
export function uselessForMs(peer: PeerUse, nowMs: number): number {
  if (!peer.incoming) return 0
  const idleMs = nowMs - Math.max(peer.uploadActiveAt, peer.downloadActiveAt)
  const allowedMs = peer.amInterested || peer.peerInterested ? WAITING_MS : INDIFFERENT_MS
  return Math.max(0, idleMs - allowedMs)
}
