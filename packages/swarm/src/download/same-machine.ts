import type { Peer } from '../peer/peer.ts'

/** Bytes per second: more than anybody would limit uploads to, and less than a network of a gigabit. */
const PLENTY = 64 * 1024 * 1024

/**
 * Whether a peer on that host (an IP address) gives so much that the webseed of the same machine may rest. A node of ours names both its ways, each byte
 * costs both sides less over the peer protocol, and they share one network and one limit. A webseed elsewhere, or that of a slow peer, is asked as ever.
 */
export function givesPlenty(peers: Iterable<Peer>, host: string, nowMs: number): boolean {
  for (const peer of peers)
    if (!peer.peerChoking && peer.remoteHost === host && peer.down.recent(nowMs) >= PLENTY) return true
  return false
}
