import type { LayoutFile, TorrentInfo } from '@svc/metainfo'
import type { TorrentWarning } from '../events.ts'

/**
 * - `metadata`: the info dictionary is being fetched from peers.
 * - `checking`: the storage is asked what it has; old bytes are hashed.
 * - `fetching`, `seeding`: what is missing is fetched; or nothing is, or (`seedOnly`) nothing will be.
 * - `failed`: see `SwarmTorrent.error`; `closed`: removed.
 */
export type TorrentState = 'metadata' | 'checking' | 'fetching' | 'seeding' | 'failed' | 'closed'

/** Events of a torrent and what their listeners get. */
export interface TorrentEvents {
  metadata: [TorrentInfo]
  piece: [piece: number]
  file: [LayoutFile]
  complete: []
  warning: [TorrentWarning]
  failed: [Error]
  closed: []
}

/** Where a torrent stands; a snapshot. */
export interface TorrentProgress {
  readonly state: TorrentState
  /** Undefined until the metadata is known. */
  readonly totalBytes: number | undefined
  /** Bytes of pieces that are verified and in the storage. */
  readonly verifiedBytes: number
  /** Bytes of pieces that came from peers and webseeds, bad and superfluous ones included. */
  readonly downloadedBytes: number
  /** Bytes of pieces that went out to peers. */
  readonly uploadedBytes: number
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
  readonly peers: number
  readonly seeds: number
  /** Webseeds that are answering at the moment. */
  readonly webseeds: number
  readonly knownAddresses: number
}
