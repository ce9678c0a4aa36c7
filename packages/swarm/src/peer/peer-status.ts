/** One connection of a torrent; a snapshot. */
export interface PeerStatus {
  /** `host:port`, as connected. */
  readonly address: string
  /** The client's name as it announced it. */
  readonly client: string | undefined
  readonly incoming: boolean
  /** How its address became known: from the user, by discovery, or as it connected to us. */
  readonly source: 'user' | 'discovery' | 'incoming'
  /** The share of the pieces that it has, 0 to 1; undefined while their number is unknown. */
  readonly have: number | undefined
  readonly seed: boolean
  readonly encrypted: boolean
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
}
