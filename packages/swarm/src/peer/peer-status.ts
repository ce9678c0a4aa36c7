/** One connection of a torrent; a snapshot. */
export interface PeerStatus {
  /** `host:port`, as connected. */
  readonly address: string
  /** What it calls itself. */
  readonly client: string | undefined
  readonly incoming: boolean
  readonly seed: boolean
  readonly encrypted: boolean
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
}
