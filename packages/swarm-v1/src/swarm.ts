import { boundIntervals, isPublicAddress } from '@svc/internal-net'
import { Blame } from './blame.ts'
import type { WebTorrentClient, WebTorrentTorrent, WebTorrentWire } from './client.ts'
import { SwarmV1Error } from './errors.ts'
import { parseV1Torrent, torrentBytes, type V1Layout } from './layout.ts'
import { loadWebTorrent } from './load-webtorrent.ts'
import { StorageChunks, type V1Storage } from './storage.ts'

export interface V1SwarmOptions {
  /** Where peers can reach us; port 0 takes a free one. */
  readonly peerAddress: { readonly host: string; readonly port: number }
  /** `false` turns DHT and PEX off; a list bootstraps the DHT from there alone. */
  readonly dht: boolean | readonly string[]
  /**
   * Also dial loopback, private and link-local addresses that trackers, DHT or peers name. Addresses in
   * {@link JoinOptions.peers} are the user's own words and always dialled.
   */
  readonly allowPrivateAddresses: boolean
  /** Bytes per second over all foreign torrents; 0 is unlimited. */
  readonly uploadLimitBytesPerSecond: number
}

export interface JoinOptions {
  /** 40 lower-case hex characters. */
  readonly infohash: string
  /** The info dictionary where it is known already (seeding after a restart); checked against the infohash. */
  readonly info?: Uint8Array
  /** HTTP and UDP trackers; others are left out. */
  readonly trackers: readonly string[]
  /** `host:port` */
  readonly peers: readonly string[]
  readonly metadataTimeoutMs: number
  /** Every piece is there and was verified by other means: a sample is checked instead of everything. */
  readonly complete?: boolean
  readonly signal?: AbortSignal
  /**
   * Called once with the checked layout, before a byte of content is asked for. Throwing leaves the swarm;
   * `ready` and `done` then reject with that error.
   */
  open(layout: V1Layout): Promise<V1Storage>
  /** A peer that sent wrong pieces was dropped; `message` names it. */
  readonly onWarning?: (message: string) => void
}

export interface V1Progress {
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
  readonly uploadedBytes: number
}

export interface V1Torrent {
  readonly infohash: string
  /** Resolves when the metadata is checked and the storage is open. */
  readonly ready: Promise<V1Layout>
  /** Resolves when every piece is verified and written. Rejects on a failing storage, on `leave` and on abort. */
  readonly done: Promise<void>
  progress(): V1Progress
  addPeer(address: string): void
  /** Idempotent; resolves when the last storage call has returned and every socket is closed. */
  leave(): Promise<void>
}

/**
 * BitTorrent v1 swarms through webtorrent: TCP peers, HTTP and UDP trackers, DHT and PEX. Its WebRTC, uTP, UPnP, NAT-PMP,
 * local discovery and web seeds are off, and what it parses is checked by {@link parseV1Torrent} before it may use it.
 */
export class V1Swarm {
  readonly #client: WebTorrentClient
  readonly #torrents = new Set<V1Torrent>()
  readonly #named = new Set<string>()
  #closing: Promise<void> | undefined

  private constructor(client: WebTorrentClient) {
    this.#client = client
  }

  /** @throws SwarmV1Error `E_SWARM_V1`, reason `client`, when the port cannot be had. */
  static async start(options: V1SwarmOptions): Promise<V1Swarm> {
    const WebTorrent = await loadWebTorrent()
    const { host, port } = options.peerAddress
    const bootstrap = typeof options.dht === 'object' ? [...options.dht] : undefined
    const client = new WebTorrent({
      // Handed on to `server.listen` and `socket.bind`, which take an object: the only way to name an address.
      torrentPort: { host, port },
      dhtPort: { address: host, port: 0 },
      dht: options.dht === false ? false : bootstrap ? { bootstrap } : {},
      utPex: options.dht !== false,
      tracker: { wrtc: false },
      lsd: false,
      utp: false,
      natUpnp: false,
      natPmp: false,
      webSeeds: false,
      // With encryption on, webtorrent never falls back to plain for peers that speak nothing else; nearly all accept plain.
      secure: 0,
      uploadLimit: options.uploadLimitBytesPerSecond > 0 ? options.uploadLimitBytesPerSecond : -1
    })
    await new Promise<void>((resolve, reject) => {
      client.once('listening', resolve)
      client.once('error', (error: unknown) =>
        reject(
          new SwarmV1Error('E_SWARM_V1', 'client', `the foreign swarm client cannot listen on ${host}:${port}`, {
            cause: error
          })
        )
      )
    })
    // Errors of one torrent are handled there; those that are left are not worth the process.
    client.on('error', () => {})
    const swarm = new V1Swarm(client)
    if (!options.allowPrivateAddresses) {
      client.blocked = { contains: (host) => !isPublicAddress(host.replace(/^\[|\]$/g, '')) && !swarm.#named.has(host) }
    }
    return swarm
  }

  get address(): { readonly host: string; readonly port: number } {
    const address = this.#client.address()
    if (!address) throw new SwarmV1Error('E_SWARM_V1', 'client', 'the foreign swarm client is closed')
    return { host: address.address, port: address.port }
  }

  get torrents(): ReadonlySet<V1Torrent> {
    return this.#torrents
  }

  join(options: JoinOptions): V1Torrent {
    for (const peer of options.peers) this.#named.add(peer.slice(0, peer.lastIndexOf(':')))
    const torrent = new Joined(this.#client, options, () => this.#torrents.delete(torrent))
    this.#torrents.add(torrent)
    return torrent
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.all([...this.#torrents].map((torrent) => torrent.leave()))
      await new Promise<void>((resolve) => this.#client.destroy(() => resolve()))
    })()
    return this.#closing
  }
}

const FAILED_PIECE = /^Piece (\d+) failed verification$/

class Joined implements V1Torrent {
  readonly infohash: string
  readonly ready: Promise<V1Layout>
  readonly done: Promise<void>
  readonly #torrent: WebTorrentTorrent
  readonly #options: JoinOptions
  readonly #layout = Promise.withResolvers<V1Layout>()
  readonly #storage = Promise.withResolvers<V1Storage>()
  readonly #done = Promise.withResolvers<void>()
  readonly #pending = new Set<Promise<unknown>>()
  readonly #blame = new Blame()
  readonly #onLeft: () => void
  readonly #timer: NodeJS.Timeout
  #metadataSeen = false
  #left: Promise<void> | undefined

  constructor(client: WebTorrentClient, options: JoinOptions, onLeft: () => void) {
    this.infohash = options.infohash
    this.#options = options
    this.#onLeft = onLeft
    this.ready = this.#storage.promise.then(() => this.#layout.promise)
    this.done = this.#done.promise
    const layout = this.#layout.promise
    const storage = this.#tracked()
    // Whoever asks gets the rejection; nobody has to ask.
    for (const promise of [this.ready, this.done, layout, storage]) promise.catch(() => {})

    const id = options.info
      ? torrentBytes(options.info, options.trackers)
      : { infoHash: options.infohash, announce: options.trackers.filter(isTracker) }
    this.#torrent = client.add(id, {
      store: class extends StorageChunks {
        constructor(pieceLength: number) {
          super(pieceLength, layout, storage)
        }
      },
      storeCacheSlots: 0,
      strategy: 'rarest',
      ...(options.complete && options.info ? { bitfield: fullBitfield(options.info, options.infohash) } : {})
    })
    this.#checkMetadataFirst()
    this.#boundAnnounces()

    this.#timer = setTimeout(
      () =>
        this.#fail(
          new SwarmV1Error(
            'E_SWARM_V1',
            'metadata-timeout',
            "no peer gave the torrent's metadata in time: the swarm is unreachable"
          )
        ),
      options.metadataTimeoutMs
    )
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) queueMicrotask(this.#abort)
    this.#torrent.on('error', (error: unknown) =>
      this.#fail(
        error instanceof SwarmV1Error
          ? error
          : new SwarmV1Error('E_SWARM_V1', 'client', 'the foreign torrent failed', { cause: error })
      )
    )
    this.#torrent.once('done', () => this.#done.resolve())
    this.#torrent.on('wire', (wire: WebTorrentWire, address?: string) =>
      this.#watch(wire, address ?? wire.remoteAddress ?? 'unknown')
    )
    this.#torrent.on('verified', (piece: number) => this.#blame.verified(piece))
    this.#torrent.on('warning', (warning: unknown) => this.#onWarning(warning))
    this.#torrent.once('infoHash', () => {
      for (const peer of options.peers) this.addPeer(peer)
    })
  }

  addPeer(address: string): void {
    if (!this.#torrent.destroyed && !this.#blame.isBanned(address)) this.#torrent.addPeer(address)
  }

  progress(): V1Progress {
    const torrent = this.#torrent
    if (torrent.destroyed)
      return { peers: 0, downBytesPerSecond: 0, upBytesPerSecond: 0, uploadedBytes: torrent.uploaded }
    return {
      peers: torrent.numPeers,
      downBytesPerSecond: Math.round(torrent.downloadSpeed),
      upBytesPerSecond: Math.round(torrent.uploadSpeed),
      uploadedBytes: torrent.uploaded
    }
  }

  leave(): Promise<void> {
    this.#left ??= this.#leave()
    return this.#left
  }

  async #leave(): Promise<void> {
    clearTimeout(this.#timer)
    this.#options.signal?.removeEventListener('abort', this.#abort)
    const left = new SwarmV1Error('E_SWARM_V1', 'aborted', 'the foreign torrent was left before it was complete')
    this.#layout.reject(left)
    this.#storage.reject(left)
    this.#done.reject(left)
    if (!this.#torrent.destroyed) {
      await new Promise<void>((resolve) => this.#torrent.destroy(() => resolve()))
    }
    await Promise.allSettled([...this.#pending])
    this.#onLeft()
  }

  readonly #abort = (): void => {
    this.#fail(new SwarmV1Error('E_SWARM_V1', 'aborted', 'aborted', { cause: this.#options.signal?.reason }))
  }

  #fail(error: unknown): void {
    this.#layout.reject(error)
    this.#storage.reject(error)
    this.#done.reject(error)
    void this.leave()
  }

  /**
   * webtorrent's own parser accepts nearly anything, so the metadata passes ours first. `_onMetadata` is where both
   * ways in (from a peer, from `info`) meet.
   */
  #checkMetadataFirst(): void {
    const torrent = this.#torrent
    const inner = torrent._onMetadata
    if (typeof inner !== 'function') {
      throw new SwarmV1Error(
        'E_SWARM_V1',
        'client',
        'this version of webtorrent hands metadata over in another way than the tested one'
      )
    }
    torrent._onMetadata = async (metadata) => {
      if (this.#metadataSeen) return
      this.#metadataSeen = true
      clearTimeout(this.#timer)
      try {
        const layout = parseV1Torrent(this.#options.info ?? asBytes(metadata), this.#options.infohash)
        this.#layout.resolve(layout)
        const storage = await this.#options.open(layout)
        this.#storage.resolve(storage)
        if (!torrent.destroyed) await inner.call(torrent, metadata)
      } catch (error) {
        this.#fail(error)
      }
    }
  }

  #boundAnnounces(): void {
    const torrent = this.#torrent
    const inner = torrent._startDiscovery
    if (typeof inner !== 'function') {
      throw new SwarmV1Error(
        'E_SWARM_V1',
        'client',
        'this version of webtorrent starts its trackers in another way than the tested one'
      )
    }
    torrent._startDiscovery = () => {
      const before = torrent.discovery
      inner.call(torrent)
      // its first answers come later
      const tracker = torrent.discovery?.tracker
      if (torrent.discovery !== before && tracker) boundIntervals(tracker)
    }
  }

  /** The storage, with every call under way remembered: `leave` must not return before the last of them. */
  async #tracked(): Promise<V1Storage> {
    const storage = await this.#storage.promise
    const track = <T>(work: Promise<T>): Promise<T> => {
      const settled = work.catch(() => {}).finally(() => this.#pending.delete(settled))
      this.#pending.add(settled)
      return work
    }
    return {
      has: (file, start, end) => storage.has(file, start, end),
      read: (file, offset, target) => track(storage.read(file, offset, target)),
      write: (file, offset, bytes) => track(storage.write(file, offset, bytes))
    }
  }

  #watch(wire: WebTorrentWire, address: string): void {
    if (this.#blame.isBanned(address)) return wire.destroy()
    wire.on('piece', (piece: number) => this.#blame.sent(piece, address))
  }

  #onWarning(warning: unknown): void {
    const failed = FAILED_PIECE.exec(warning instanceof Error ? warning.message : String(warning))
    if (!failed) return
    for (const address of this.#blame.failed(Number(failed[1]))) {
      this.#options.onWarning?.(`peer ${address} sent a wrong piece and was dropped`)
      if (!this.#torrent.destroyed) this.#torrent.removePeer(address)
    }
  }
}

const isTracker = (url: string): boolean => /^(https?|udp):\/\//.test(url)

function asBytes(metadata: unknown): Uint8Array {
  if (ArrayBuffer.isView(metadata)) return new Uint8Array(metadata.buffer, metadata.byteOffset, metadata.byteLength)
  throw new SwarmV1Error('E_SWARM_V1', 'metadata', 'the torrent client handed over no metadata bytes')
}

function fullBitfield(info: Uint8Array, infohash: string): Uint8Array {
  return new Uint8Array(Math.ceil(parseV1Torrent(info, infohash).pieceCount / 8)).fill(0xff)
}
