import type { EventEmitter } from 'node:events'
import type { Server, Socket } from 'node:net'

// The subset of webtorrent 3 that is used here; it ships no types. Members with an underscore are not its public API,
// so their existence is checked: a version that moved them fails loudly.

export interface WebTorrentWire extends EventEmitter {
  readonly remoteAddress?: string
  readonly remotePort?: number
  unchoke(): unknown
  destroy(): void
}

export interface WebTorrentTorrent extends EventEmitter {
  readonly infoHash: string
  readonly destroyed: boolean
  readonly private?: boolean
  readonly numPeers: number
  readonly downloadSpeed: number
  readonly uploadSpeed: number
  readonly uploaded: number
  readonly downloaded: number
  readonly done: boolean
  readonly length: number
  /** Pieces that are not verified yet; `missing` in bytes. */
  readonly pieces: readonly ({ readonly length: number; readonly missing: number } | null)[]
  readonly wires: readonly WebTorrentWire[]
  addPeer(address: string, source?: string): boolean
  removePeer(address: string): void
  destroy(callback?: (error?: Error) => void): void
  _onMetadata(metadata: unknown): Promise<void>
  /** Addresses that wait for a connection or have one, and connections that came in, by their id. */
  readonly _peers: { has(id: string): boolean }
  readonly _peersLength: number
  /** Checks what can be requested from whom. */
  _update(): void
  /** Requests a block of a piece from a wire, if there is one to request. */
  _request(wire: WebTorrentWire, piece: number, hotswap: boolean): boolean
}

/** The client, with one listener for all torrents. */
export interface WebTorrentClient extends EventEmitter {
  readonly peerId: string
  /** Addresses that are not dialled. */
  blocked?: { contains(host: string): boolean }
  add(torrent: unknown, options: Record<string, unknown>): WebTorrentTorrent
  address(): { readonly address: string; readonly port: number } | null
  destroy(callback: (error?: Error) => void): void
  readonly throttleGroups?: {
    readonly down: {
      setRate(bytesPerSecond: number, chunkBytes: number): void
      setEnabled(isEnabled: boolean): void
      bucket: {
        tryRemoveTokens(count: number): boolean
        removeTokens(count: number, callback: () => void): void
        readonly tokensPerInterval: number
      }
    }
  }
  readonly _connPool?: {
    readonly tcpServer?: Server
    /** The listener for `connection`. */
    readonly _onTCPConnectionBound?: (socket: Socket) => void
  }
}

export type WebTorrentConstructor = new (options: Record<string, unknown>) => WebTorrentClient
