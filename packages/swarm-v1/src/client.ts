import type { EventEmitter } from 'node:events'
import type { TrackerTimers } from '@svc/internal-net'

// The parts of webtorrent 3 that are used here; it ships no types. Members with an underscore are not its public API:
// `V1Swarm` checks at the start that they are there and fails loudly when a new version moved them.

export interface WebTorrentWire extends EventEmitter {
  readonly remoteAddress?: string
  destroy(): void
}

export interface WebTorrentTorrent extends EventEmitter {
  readonly infoHash: string
  readonly destroyed: boolean
  readonly done: boolean
  readonly numPeers: number
  readonly downloadSpeed: number
  readonly uploadSpeed: number
  readonly uploaded: number
  readonly received: number
  readonly wires: readonly WebTorrentWire[]
  readonly bitfield?: { get(index: number): boolean }
  addPeer(address: string): boolean
  removePeer(address: string): void
  destroy(callback?: (error?: Error) => void): void
  readonly discovery?: { readonly tracker?: TrackerTimers | undefined } | null
  _onMetadata(metadata: unknown): Promise<void>
  _startDiscovery(): void
}

export interface WebTorrentClient extends EventEmitter {
  readonly torrents: readonly WebTorrentTorrent[]
  /** Addresses that are not dialled. */
  blocked?: { contains(host: string): boolean }
  add(torrent: unknown, options: Record<string, unknown>): WebTorrentTorrent
  address(): { readonly address: string; readonly port: number } | null
  throttleUpload(bytesPerSecond: number): void
  destroy(callback: (error?: Error) => void): void
}

export type WebTorrentConstructor = new (options: Record<string, unknown>) => WebTorrentClient
