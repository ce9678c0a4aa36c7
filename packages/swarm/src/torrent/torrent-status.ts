import type { LayoutFile, TorrentInfo } from '@svc/metainfo'
import type { TorrentWarning } from '../events.ts'

/**
 * The state of a torrent.
 * - `metadata`: the info dictionary is being fetched from peers.
 * - `checking`: the storage reports its files, and existing bytes are hashed.
 * - `fetching`: missing pieces are fetched; `seeding`: none are missing, or (`seedOnly`) none are fetched.
 * - `failed`: see `Torrent.error`; `closed`: removed.
 */
export type TorrentState = 'metadata' | 'checking' | 'fetching' | 'seeding' | 'failed' | 'closed'

/** Events of a torrent and the arguments of their listeners. */
export interface TorrentEvents {
  metadata: [TorrentInfo]
  piece: [piece: number]
  file: [LayoutFile]
  complete: []
  warning: [TorrentWarning]
  failed: [Error]
  closed: []
}

/** Bytes `[start, end)` of a file. */
export interface FileRange {
  readonly fileIndex: number
  readonly start: number
  readonly end: number
}

/** The progress of a torrent; a snapshot. */
export interface TorrentProgress {
  readonly state: TorrentState
  /** Undefined until the metadata is known. */
  readonly totalBytes: number | undefined
  /** Bytes of pieces that are verified and stored. */
  readonly verifiedBytes: number
  /** Bytes that have arrived of pieces that are not verified yet. */
  readonly unverifiedBytes: number
  /** Bytes of pieces received from peers and webseeds, including bad and duplicate ones. */
  readonly downloadedBytes: number
  /** Bytes of pieces sent to peers. */
  readonly uploadedBytes: number
  /** Bytes per second. */
  readonly downloadRate: number
  readonly uploadRate: number
  readonly peers: number
  /** Number of active webseeds. */
  readonly webseeds: number
}
