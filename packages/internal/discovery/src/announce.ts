import type { PeerAddress } from '@svc/internal-net'

export type AnnounceEvent = 'started' | 'completed' | 'stopped'

export interface Announce {
  /** 20 bytes: that of BitTorrent v1, or the truncated one of v2 (BEP 52). */
  readonly infohash: Uint8Array
  /** 20 bytes. */
  readonly peerId: Uint8Array
  readonly port: number
  /** Bytes. */
  readonly uploaded: number
  readonly downloaded: number
  readonly left: number
  readonly event: AnnounceEvent | undefined
  /** The id that this tracker asked us to send back. */
  readonly trackerId: Uint8Array | undefined
}

export interface Announced {
  /** At most {@link MAX_PEERS}. */
  readonly peers: readonly PeerAddress[]
  /** The interval requested by the tracker, before limits. */
  readonly intervalMs: number | undefined
  readonly trackerId: Uint8Array | undefined
  /** A message from the tracker, for people. */
  readonly warning: string | undefined
  /** The tracker answered from a private or loopback address, and so may name such peers: its name would not show that. */
  readonly byPrivate: boolean
}

/** Limit of peers taken from one answer. */
export const MAX_PEERS = 200
export const PEERS_WANTED = 100
/** Limit for one announce, including retries. */
export const ANNOUNCE_TIMEOUT_MS = 15_000

/** Untrusted text, printable and truncated. */
export const printableReason = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '·').slice(0, 200)
