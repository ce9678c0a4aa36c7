export { SwarmError, type SwarmErrorCode } from './errors.ts'
export { createFileStorage, type FileStorageOptions } from './file-storage.ts'
export type { ByteRanges, FileState, FileWriter, TorrentStorage } from './storage.ts'
export { createSwarm, type Swarm, type SwarmOptions } from './swarm.ts'
export type { Torrent as SwarmTorrent } from './torrent/torrent.ts'
export type { TorrentOptions as SwarmTorrentOptions } from './torrent/torrent-options.ts'
export type {
  PeerStatus,
  TorrentEvents,
  TorrentProgress,
  TorrentState,
  TorrentWarning
} from './torrent/torrent-status.ts'
