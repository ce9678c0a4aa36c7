import type { EventEmitter } from 'node:events'

// The parts of webtorrent 3 that are used here; it ships no types. Members with an underscore are not its public API:
// they are checked to be there, so that a version that moved them fails loudly.

/** One connection. */
export interface WebTorrentWire extends EventEmitter {
  readonly remoteAddress?: string
  readonly remotePort?: number
  destroy(): void
}

/** One torrent. */
export interface WebTorrentTorrent extends EventEmitter {
  readonly infoHash: string
  readonly destroyed: boolean
  readonly private?: boolean
  readonly numPeers: number
  readonly downloadSpeed: number
  readonly uploadSpeed: number
  readonly uploaded: number
  readonly downloaded: number
  readonly length: number
  readonly wires: readonly WebTorrentWire[]
  addPeer(address: string): boolean
  removePeer(address: string): void
  destroy(callback?: (error?: Error) => void): void
  _onMetadata(metadata: unknown): Promise<void>
  /** Looks what can be asked of whom. */
  _update(): void
  /** Asks a wire for a block of a piece, where there is one to ask for. */
  _request(wire: WebTorrentWire, piece: number, hotswap: boolean): boolean
}

/** The client: one listener for all torrents. */
export interface WebTorrentClient extends EventEmitter {
  readonly peerId: string
  /** Addresses that are not dialled. */
  blocked?: { contains(host: string): boolean }
  add(torrent: unknown, options: Record<string, unknown>): WebTorrentTorrent
  address(): { readonly address: string; readonly port: number } | null
  destroy(callback: (error?: Error) => void): void
}

export type WebTorrentConstructor = new (options: Record<string, unknown>) => WebTorrentClient
