import type { Clock } from '@svc/internal-clock'
import type { HttpClient } from '@svc/internal-http'
import type { AddressRanges, DownloadLimit, PerSecond } from '@svc/internal-net'
import type { TorrentInfo, TorrentLayout } from '@svc/metainfo'
import type { Discovery, DiscoverySink } from '../discovery/discovery.ts'
import type { FileProgress } from '../download/file-progress.ts'
import type { PieceHashes } from '../download/piece-hashes.ts'
import type { Verifier } from '../download/verifier.ts'
import type { WebseedHeaders } from '../download/webseed.ts'
import type { EventOf, PieceEvent } from '../events.ts'
import type { ConnectionBudget } from '../net/connection-budget.ts'
import type { Peer } from '../peer/peer.ts'
import type { SlotPool } from '../piece/slot-pool.ts'
import type { FramePool } from '../upload/frame.ts'
import type { HashWork } from '../upload/hash-work.ts'
import type { UploadLimiter } from '../upload/limiter.ts'
import type { TorrentOptions } from './torrent-options.ts'

export interface DiscoverySubject {
  readonly infohash: Uint8Array
  readonly trackers: readonly string[]
  readonly strangers: ReadonlySet<string>
  readonly info: TorrentInfo | undefined
  readonly options: { readonly dht?: boolean }
}

/** The resources that an engine's torrents share: memory, threads, limits, connections. */
export interface TorrentEnvironment {
  readonly clock: Clock
  readonly pool: SlotPool
  readonly verifier: Verifier
  readonly frames: FramePool
  readonly limiter: UploadLimiter
  readonly downloads: DownloadLimit | undefined
  /** Rejections, by host. */
  readonly rejects: PerSecond
  readonly hashWork: HashWork
  readonly random: () => number
  readonly connections: ConnectionBudget
  readonly maxPeersPerTorrent: number
  /** Ids of peers, webseeds and torrents: positive, unique in the engine. */
  readonly nextId: () => number
  readonly http: HttpClient
  readonly webseedHeaders: WebseedHeaders | undefined
  readonly parseInfo: (info: Uint8Array) => Promise<TorrentInfo>
  readonly peerId: Uint8Array
  /** Undefined without a listener. */
  readonly listenPort: () => number | undefined
  readonly uploadSlots: number
  readonly pex: boolean
  /** The ranges of peers that belong to the same fleet. */
  readonly trusted: AddressRanges
  /** The zone of this engine; undefined: all peers are equally near. */
  readonly zone: string | undefined
  readonly discover: (torrent: DiscoverySubject, sink: DiscoverySink) => readonly Discovery[]
  readonly removed: (infohash: Uint8Array) => void
}

/** Shared by the parts of a torrent whose metadata is known. */
export interface TorrentParts {
  readonly env: TorrentEnvironment
  readonly options: TorrentOptions
  /** Unique in the engine. */
  readonly id: number
  readonly info: TorrentInfo
  readonly layout: TorrentLayout
  readonly hashes: PieceHashes
  readonly progress: FileProgress
  /** The peers that were told what we have: only those are asked and served. */
  readonly peers: ReadonlyMap<number, Peer>
  readonly emit: (event: PieceEvent | EventOf<'bad-data' | 'warning' | 'failed'>) => void
}
