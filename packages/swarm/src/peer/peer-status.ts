/** One connection of a torrent; a snapshot. */
export interface PeerStatus {
  /** `host:port`, as connected. */
  readonly address: string
  /** The client's name as it announced it. */
  readonly client: string | undefined
  readonly incoming: boolean
  readonly seed: boolean
  readonly encrypted: boolean
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
}
