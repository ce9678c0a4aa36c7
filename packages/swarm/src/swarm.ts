import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { DhtOptions } from '@svc/internal-discovery'
import type { ThreadFault } from '@svc/internal-workers'
import { equalBytes, parseInfo, parseMagnet, tryFromHex } from '@svc/metainfo'
import type { Discovery, DiscoverySink } from './discovery/discovery.ts'
import { WorkerDiscovery } from './discovery/worker-discovery.ts'
import { SlotPool } from './download/slot-pool.ts'
import { Verifier } from './download/verifier.ts'
import { SwarmError } from './errors.ts'
import { HttpPools } from './net/http.ts'
import { Listener } from './net/listener.ts'
import { Transport } from './net/transport.ts'
import { IncomingHandshake } from './peer/handshaking.ts'
import { Torrent, type TorrentEnvironment, type TorrentOptions, wireKey } from './torrent/torrent.ts'
import { UploadLimiter } from './upload/limiter.ts'
import { ReadCache } from './upload/read-cache.ts'
import { TokenBucket } from './upload/token-bucket.ts'
import { mseKeyOf } from './wire/mse.ts'

export interface SwarmOptions {
  /** Where peers reach us; port 0: any free one. `false`: no listener, peers are dialled only. */
  readonly peerAddress?: { readonly host: string; readonly port: number } | false
  /** A DHT node of its own; absent or false: none. */
  readonly dht?: DhtOptions | false
  /** Peer exchange; default true. */
  readonly pex?: boolean
  /** Bytes per second over all torrents; 0: unlimited. */
  readonly uploadLimit?: number
  /** Connections over all torrents, half-open ones included; default 500. */
  readonly maxConnections?: number
  /** Default 200. */
  readonly maxPeersPerTorrent?: number
  /** Peers served at once per torrent; default 32. */
  readonly uploadSlots?: number
  /** Receive memory; default 64 MiB. */
  readonly receiveBytes?: number
  /** Read cache of uploads; default 32 MiB. */
  readonly cacheBytes?: number
  /** Threads that verify and write; default 2. */
  readonly verifyThreads?: number
  readonly clientName?: string
  /** A thread that finds peers (`dht`, `trackers`) crashed and starts again after a pause; called once for each crash. */
  readonly onFault?: (fault: ThreadFault) => void
}

const HANDSHAKE_TIMEOUT_MS = 10_000
const TICK_MS = 1_000

/** An engine: one listener, one set of buffers and threads, any number of torrents. */
export interface Swarm {
  /** The port that peers connect to; undefined without a listener. */
  readonly port: number | undefined
  /** The DHT's UDP port, where there is one. */
  readonly dhtPort: number | undefined
  readonly torrents: readonly Torrent[]
  /** The engine's upload limit, for whoever sends beside it (a webseed) to share; undefined when unlimited. */
  readonly uploadBudget: { waitMs(nowMs: number): number; spend(bytes: number): void } | undefined
  /**
   * Joins a swarm. A torrent that is here already is refused.
   * @throws SwarmError `E_OPTION`, `E_METAINFO`, `E_MAGNET`, `E_CLOSED`.
   */
  add(options: TorrentOptions): Torrent
  /** By 32-byte infohash. */
  get(infohash: Uint8Array): Torrent | undefined
  addDhtNode(node: { readonly host: string; readonly port: number }): void
  /** Removes all torrents; no socket, timer, thread or descriptor of the engine is left. Idempotent. */
  close(): Promise<void>
  /** For tests: throws when a state machine contradicts itself. */
  checkInvariants(): void
}

/** Starts an engine. @throws the system's error when the address cannot be listened on. */
export async function createSwarm(options: SwarmOptions = {}): Promise<Swarm> {
  const engine = new Engine(options)
  try {
    await engine.start()
  } catch (error) {
    await engine.close()
    throw error
  }
  return engine
}

/** Wires listener, discovery, shared buffers and torrents; holds no state of the protocol. */
class Engine implements Swarm {
  readonly #options: SwarmOptions
  readonly #torrents = new Map<string, Torrent>()
  readonly #byMseKey = new Map<string, Torrent>()
  readonly #peerId: Uint8Array = Buffer.concat([Buffer.from('-SV0100-', 'latin1'), randomBytes(12)])
  readonly #parts: TorrentEnvironment['parts']
  readonly #pools = new HttpPools()
  readonly #bucket: TokenBucket
  readonly #greeting = new Set<Transport>()
  readonly #discovery: WorkerDiscovery
  #listener: Listener | undefined
  #connections = 0
  #nextId = 1
  #timer: NodeJS.Timeout | undefined
  #closing: Promise<void> | undefined

  constructor(options: SwarmOptions) {
    this.#options = options
    this.#bucket = new TokenBucket(options.uploadLimit ?? 0, performance.now())
    this.#discovery = new WorkerDiscovery((fault) => options.onFault?.(fault))
    this.#parts = {
      pool: new SlotPool(options.receiveBytes ?? 64 * 1024 * 1024),
      verifier: new Verifier(options.verifyThreads ?? 2),
      cache: new ReadCache(options.cacheBytes ?? 32 * 1024 * 1024),
      limiter: new UploadLimiter(),
      random: Math.random
    }
  }

  async start(): Promise<void> {
    const address = this.#options.peerAddress ?? { host: '0.0.0.0', port: 0 }
    if (address !== false)
      this.#listener = await Listener.open({ ...address, accept: (socket) => this.#accept(socket) })
    if (this.#options.dht) await this.#discovery.startDht(this.#options.dht)
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  get port(): number | undefined {
    return this.#listener?.port
  }

  get dhtPort(): number | undefined {
    return this.#discovery.dhtPort
  }

  get uploadBudget(): TokenBucket | undefined {
    return this.#bucket.limited ? this.#bucket : undefined
  }

  get torrents(): readonly Torrent[] {
    return [...this.#torrents.values()]
  }

  get(infohash: Uint8Array): Torrent | undefined {
    const torrent = this.#torrents.get(wireKey(infohash))
    return torrent !== undefined && equalBytes(torrent.infohash, infohash) ? torrent : undefined
  }

  add(options: TorrentOptions): Torrent {
    if (this.#closing !== undefined) throw new SwarmError('E_CLOSED', 'closed', 'the engine is closed')
    const identity = identityOf(options)
    const key = wireKey(identity.infohash)
    if (this.#torrents.has(key))
      throw new SwarmError('E_OPTION', 'duplicate', 'this torrent is here already', { details: { infohash: key } })
    const torrent = new Torrent(this.#environment(), options, identity)
    this.#torrents.set(key, torrent)
    this.#byMseKey.set(mseKeyOf(tryFromHex(key)!), torrent)
    torrent.start()
    return torrent
  }

  #environment(): TorrentEnvironment {
    return {
      parts: this.#parts,
      pools: this.#pools,
      peerId: this.#peerId,
      clientName: this.#options.clientName ?? 'svc-swarm 0.1',
      listenPort: this.#listener?.port,
      globalBucket: this.#bucket,
      uploadSlots: this.#options.uploadSlots ?? 32,
      pex: this.#options.pex !== false,
      limits: {
        maxPeersPerTorrent: this.#options.maxPeersPerTorrent ?? 200,
        take: () => this.#take(),
        give: () => {
          this.#connections -= 1
        },
        nextPeerId: () => {
          this.#nextId += 1
          return this.#nextId
        }
      },
      discover: (torrent, sink) => this.#discover(torrent, sink),
      removed: (torrent) => {
        const key = wireKey(torrent.infohash)
        this.#torrents.delete(key)
        this.#byMseKey.delete(mseKeyOf(tryFromHex(key)!))
      }
    }
  }

  #take(): boolean {
    if (this.#connections >= (this.#options.maxConnections ?? 500)) return false
    this.#connections += 1
    return true
  }

  async #discover(torrent: Torrent, sink: DiscoverySink): Promise<readonly Discovery[]> {
    return this.#discovery.join({
      infohash: torrent.infohash,
      trackers: torrent.trackers,
      peerId: this.#peerId,
      port: this.#listener?.port,
      dht: torrent.options.dht !== false && torrent.info?.private !== true,
      sink
    })
  }

  addDhtNode(node: { readonly host: string; readonly port: number }): void {
    this.#discovery.addDhtNode(node)
  }

  #accept(socket: Socket): void {
    if (this.#closing !== undefined || !this.#take()) {
      socket.destroy()
      return
    }
    // The handshake's owner is set below, before any byte can arrive.
    let handshaking: IncomingHandshake | undefined
    const transport = new Transport(socket, {
      data: (bytes) => handshaking!.data(bytes),
      closed: (error) => handshaking!.closed(error)
    })
    socket.on('data', (bytes) => transport.receive(bytes))
    this.#greeting.add(transport)
    handshaking = new IncomingHandshake(
      transport,
      {
        answer: (infohash) => this.#torrents.get(wireKey(infohash))?.handshake(),
        infohashByMseKey: (key) => this.#byMseKey.get(key)?.handshake().infohash
      },
      {
        done: (handshake, open, rest) => {
          this.#greeting.delete(transport)
          this.#torrents.get(wireKey(handshake.infohash))!.accept(handshake, open, rest)
        },
        failed: () => {
          this.#greeting.delete(transport)
          this.#connections -= 1
        }
      },
      HANDSHAKE_TIMEOUT_MS
    )
  }

  #tick(): void {
    const now = performance.now()
    for (const torrent of this.#torrents.values()) torrent.tick(now)
    if (this.#parts.cache.pinned === 0 && this.#torrents.size === 0) this.#parts.cache.trim()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#timer !== undefined) clearInterval(this.#timer)
    const listening = this.#listener?.close()
    for (const transport of [...this.#greeting]) transport.close()
    await Promise.all([...this.#torrents.values()].map((torrent) => torrent.remove()))
    this.#parts.limiter.close()
    await Promise.all([listening, this.#discovery.close(), this.#parts.verifier.close(), this.#pools.close()])
    this.#parts.pool.trim()
    this.#parts.cache.trim()
  }

  checkInvariants(): void {
    this.#parts.pool.checkInvariants()
    this.#parts.cache.checkInvariants()
    this.#parts.limiter.checkInvariants()
    for (const torrent of this.#torrents.values()) torrent.checkInvariants()
  }
}

function identityOf(options: TorrentOptions): ConstructorParameters<typeof Torrent>[2] {
  const given = [options.info, options.infohash, options.magnet].filter((value) => value !== undefined).length
  if (given !== 1) throw new SwarmError('E_OPTION', 'identity', 'give exactly one of info, infohash and magnet')
  const hints = { trackers: options.trackers ?? [], webseeds: options.webseeds ?? [], peers: options.peers ?? [] }
  if (options.magnet !== undefined) {
    const magnet = parseMagnet(options.magnet)
    return {
      infohash: magnet.infohash,
      info: undefined,
      trackers: unique([...hints.trackers, ...magnet.trackers]),
      webseeds: unique([...hints.webseeds, ...magnet.webseeds]),
      peers: [...hints.peers, ...magnet.peers]
    }
  }
  if (options.infohash !== undefined) {
    if (options.infohash.length !== 32) throw new SwarmError('E_OPTION', 'infohash', 'a v2 infohash has 32 bytes')
    return { infohash: new Uint8Array(options.infohash), info: undefined, ...hints }
  }
  const info = options.info instanceof Uint8Array ? parseInfo(options.info) : options.info!
  return { infohash: info.infohash, info, ...hints }
}

const unique = (urls: readonly string[]): readonly string[] => [...new Set(urls)]
