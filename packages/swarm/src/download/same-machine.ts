import type { Peer } from '../peer/peer.ts'

/** Bytes per second: more than anyone would set as an upload limit, and less than a gigabit network carries. */
const PLENTY = 32 * 1024 * 1024

/**
 * Whether a peer on that host (an IP address) delivers so much that the webseed of the same machine can pause. One of
 * our nodes announces both; a byte costs both sides less over the peer protocol, and they share one network and one
 * limit. A webseed elsewhere, or that of a slow peer, is used as usual.
 */
export function givesPlenty(peers: Iterable<Peer>, host: string, nowMs: number): boolean {
  for (const peer of peers)
    if (!peer.peerChoking && peer.remoteHost === host && peer.down.recent(nowMs) >= PLENTY) return true
  return false
}
