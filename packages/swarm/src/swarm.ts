import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import type { DhtOptions } from '@svc/internal-discovery'
import { HttpClient, type HttpClientOptions } from '@svc/internal-http'
import { AddressRanges, hostKey, PerSecond, plainAddress, TokenBucket, tryParseRange } from '@svc/internal-net'
import type { ThreadFault } from '@svc/internal-workers'
import { equalBytes, parseInfo, type TorrentInfo, truncateInfohash } from '@svc/metainfo'
import { DhtThread } from './discovery/dht.ts'
import type { Discovery, DiscoverySink } from './discovery/discovery.ts'
import type { LocalDiscovery } from './discovery/lsd.ts'
import { joinTrackers } from './discovery/trackers.ts'
import { Verifier } from './download/verifier.ts'
import type { WebseedHeaders } from './download/webseed.ts'
import { SwarmError } from './errors.ts'
import { ConnectionBudget, type ConnectionPlace } from './net/connection-budget.ts'
import { guarded } from './net/guarded.ts'
import { Listener } from './net/listener.ts'
import { Transport } from './net/transport.ts'
import { answerHandshake, Handshaking } from './peer/handshaking.ts'
import { SlotPool } from './piece/slot-pool.ts'
import type { DiscoverySubject, TorrentEnvironment } from './torrent/environment.ts'
import type { PeerSet } from './torrent/peer-set.ts'
import { Torrent } from './torrent/torrent.ts'
import { torrentIdentityOf } from './torrent/torrent-identity.ts'
import type { TorrentOptions } from './torrent/torrent-options.ts'
import { FramePool } from './upload/frame.ts'
import { HashWork } from './upload/hash-work.ts'
import { type UploadLimit, UploadLimiter } from './upload/limiter.ts'
import { isZone } from './wire/extensions.ts'
import { mseKeyOf } from './wire/mse.ts'
import { wireKey } from './wire/wire-key.ts'

/** Options of {@link createSwarm}; everything has a default. */
export interface SwarmOptions {
  /** The address on which peers can reach us; port 0: any free one. `false`: no listener, only outgoing connections. */
  readonly peerAddress?: { readonly host: string; readonly port: number } | false
  /** Options of the DHT node; absent or false: none. */
  readonly dht?: DhtOptions | false
  /** Local service discovery (BEP 14), by multicast in the local network; default false. Nothing without a listener. */
  readonly lsd?: boolean
  /** Peer exchange; default true. */
  readonly pex?: boolean
  /**
   * Address ranges of the user's own fleet (`10.0.0.0/8`, `fd00::/8`, or single addresses). Peers there may be dialled even if an
   * untrusted source names them, and are unchoked round-robin instead of tit-for-tat; setting any range reduces the use of webseeds.
   * Default none.
   */
  readonly trusted?: readonly string[]
  /**
   * Label of the engine's rack or site: 1 to 64 letters, digits, `.`, `_`, `-`. Sent to trusted peers only. Pieces that a
   * peer of the same zone has are not requested from other zones. Default: no zone.
   */
  readonly zone?: string
  /** Bytes per second over all torrents; 0: unlimited. Or a limit that the program's other senders share. */
  readonly uploadLimit?: number | UploadLimit
  /** A limit of what all torrents receive together, which other receivers of the program may share. Default: none. */
  readonly downloadLimit?: HttpClientOptions['downloads']
  /** Limit of connections over all torrents, half-open ones included; a quarter is kept for outgoing ones. Default 500. */
  readonly maxConnections?: number
  /** Limit of connections of one host (IPv6: one /64) over all torrents, in both directions; default 64. */
  readonly maxConnectionsPerHost?: number
  /** Default 200. */
  readonly maxPeersPerTorrent?: number
  /** Peers served at once per torrent; default 32. */
  readonly uploadSlots?: number
  /** Threads that verify and write; default 2. */
  readonly verifyThreads?: number
  /** Niceness of these threads on Linux, 0 (default) to 19: for programs whose event loop answers others meanwhile. */
  readonly verifyNice?: number
  /** Supplies headers for webseeds that require authentication; see {@link WebseedHeaders}. */
  readonly webseedHeaders?: WebseedHeaders
  /** As `parseInfo` of `@svc/metainfo`, e.g. in a thread: strangers send the metadata. Default: on the thread of the caller. */
  readonly parseInfo?: (info: Uint8Array) => Promise<TorrentInfo>
  /** Called once per fault: the thread of the DHT (`dht`) crashed or hung, and restarts after a pause. */
  readonly onFault?: (fault: ThreadFault) => void
  /** @internal For tests. */
  readonly clock?: Clock
}

/** Announced when there is no listener: trackers require a port, and nobody can connect to this one. */
const NO_PORT = 1
const HANDSHAKE_TIMEOUT_MS = 10_000
const RECEIVE_BYTES = 64 * 1024 * 1024
/** When all places are taken, a connection without a handshake after this time may be closed to make room. */
const HANDSHAKE_GRACE_MS = 1_000
const TICK_MS = 1_000
/** Of hash and metadata requests. They overtake what waits for the upload limit: a flood would use up all of it. */
const REJECTS_PER_SECOND = { total: 5_000, each: 200 }
/** Each takes a millisecond of this thread, and anybody who can connect may start one, without naming a torrent. */
const ENCRYPTION_HANDSHAKES_PER_SECOND = { total: 100, each: 20 }

/** A torrent of an engine, as its callers have it. */
export type SwarmTorrent = Omit<Torrent, 'connections' | 'handshake' | 'start' | 'tick'>

/** A BitTorrent engine: one listener, one set of buffers and threads, any number of torrents. */
export interface Swarm {
  /** The port that peers connect to; undefined without a listener. */
  readonly port: number | undefined
  /** The DHT's UDP port, if there is a DHT. */
  readonly dhtPort: number | undefined
  readonly torrents: readonly SwarmTorrent[]
  /**
   * Joins a swarm. A torrent that was already added is refused.
   * @throws SwarmError `E_OPTION`, `E_ADDRESS`, `E_CLOSED`; MetainfoError `E_METAINFO`, `E_MAGNET`.
   */
  add(options: TorrentOptions): SwarmTorrent
  /** By 32-byte infohash. */
  get(infohash: Uint8Array): SwarmTorrent | undefined
  /** Removes all torrents and releases all sockets, timers, threads and descriptors of the engine. Idempotent. */
  close(): Promise<void>
}

/** Starts an engine. @throws the system's error if it cannot listen; SwarmError `E_OPTION` for an invalid range or zone. */
export const createSwarm = (options: SwarmOptions = {}): Promise<Swarm> => startEngine(options)

/** {@link createSwarm} for tests, which look inside; the package does not export it. */
export async function startEngine(options: SwarmOptions): Promise<Engine> {
  const engine = new Engine(options)
  try {
    await engine.start()
  } catch (error) {
    await engine.close()
    throw error
  }
  return engine
}

/** Connects the listener, discovery, shared buffers and torrents; holds no protocol state. */
export class Engine implements Swarm {
  readonly #options: SwarmOptions
  readonly #clock: Clock
  readonly #torrents = new Map<string, Torrent>()
  readonly #byMseKey = new Map<string, Torrent>()
  readonly environment: TorrentEnvironment
  /** Accepted connections with unfinished handshakes, oldest first, with the time they were accepted. */
  readonly #greeting = new Map<Transport, number>()
  readonly #encrypting = new PerSecond(ENCRYPTION_HANDSHAKES_PER_SECOND)
  #listener: Listener | undefined
  #dht: DhtThread | undefined
  #local: LocalDiscovery | undefined
  #nextId = 1
  #timer: Timer | undefined
  #closing: Promise<void> | undefined

  constructor(options: SwarmOptions) {
    this.#options = options
    const clock = options.clock ?? systemClock
    this.#clock = clock
    const { uploadLimit = 0, downloadLimit: downloads } = options
    const limit = typeof uploadLimit === 'object' ? uploadLimit : new TokenBucket(uploadLimit, clock.monotonic())
    this.environment = {
      clock,
      pool: new SlotPool(RECEIVE_BYTES),
      verifier: new Verifier(options.verifyThreads ?? 2, options.verifyNice),
      frames: new FramePool(),
      limiter: new UploadLimiter(limit, clock),
      downloads,
      rejects: new PerSecond(REJECTS_PER_SECOND),
      hashWork: new HashWork(clock),
      random: Math.random,
      connections: new ConnectionBudget(options.maxConnections ?? 500, options.maxConnectionsPerHost ?? 64),
      maxPeersPerTorrent: options.maxPeersPerTorrent ?? 200,
      nextId: () => this.#nextId++,
      // webseeds are reached directly, whatever proxy the environment names
      http: new HttpClient({ userAgent: 'svc-swarm', proxy: false, stallMs: 15_000, clock, downloads }),
      webseedHeaders: options.webseedHeaders,
      parseInfo: options.parseInfo ?? (async (info) => parseInfo(info)),
      peerId: Buffer.concat([Buffer.from('-SV0100-', 'latin1'), randomBytes(12)]),
      // torrents are added only after the listener is open.
      listenPort: () => this.#listener?.port,
      uploadSlots: options.uploadSlots ?? 32,
      pex: options.pex !== false,
      trusted: rangesOf(options.trusted ?? []),
      zone: zoneOf(options.zone),
      discover: (torrent, sink) => this.#discover(torrent, sink),
      removed: (infohash) => {
        this.#torrents.delete(wireKey(infohash))
        this.#byMseKey.delete(mseKeyOf(truncateInfohash(infohash)))
      }
    }
  }

  async start(): Promise<void> {
    const address = this.#options.peerAddress ?? { host: '0.0.0.0', port: 0 }
    if (address !== false)
      this.#listener = await Listener.open({ ...address, clock: this.#clock, accept: (socket) => this.#accept(socket) })
    if (this.#options.lsd === true && this.#listener !== undefined) {
      // lazy, because it is off by default
      const { LocalDiscovery } = await import('./discovery/lsd.ts')
      this.#local = new LocalDiscovery(this.#listener.port, this.#clock)
    }
    const { dht, onFault } = this.#options
    if (dht) this.#dht = await DhtThread.start(dht, (fault) => onFault?.(fault))
    const tick = guarded(() => this.#tick())
    this.#timer = this.#clock.every(TICK_MS, tick)
  }

  get port(): number | undefined {
    return this.#listener?.port
  }

  get dhtPort(): number | undefined {
    return this.#dht?.port
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
    const identity = torrentIdentityOf(options)
    const key = wireKey(identity.infohash)
    if (this.#torrents.has(key))
      throw new SwarmError('E_OPTION', 'duplicate', 'this torrent was added already', { details: { infohash: key } })
    const torrent = new Torrent(this.environment, options, identity)
    this.#torrents.set(key, torrent)
    this.#byMseKey.set(mseKeyOf(torrent.handshake.infohash), torrent)
    torrent.start()
    return torrent
  }

  #discover(
    { infohash, trackers, strangers, info, options }: DiscoverySubject,
    sink: DiscoverySink
  ): readonly Discovery[] {
    const { clock, peerId } = this.environment
    const port = this.#listener?.port
    const found: Discovery[] = []
    if (trackers.length > 0)
      found.push(joinTrackers({ urls: trackers, strangers, infohash, peerId, port: port ?? NO_PORT }, sink, clock))
    // a torrent that is kept from the DHT is kept from the local network, too
    if (options.dht === false || info?.private === true) return found
    if (this.#dht !== undefined) found.push(this.#dht.join(infohash, port, sink))
    if (this.#local !== undefined) found.push(this.#local.join(infohash, sink))
    return found
  }

  #accept(socket: Socket): void {
    const host = plainAddress(socket.remoteAddress ?? '')
    const place = this.#closing === undefined ? this.#placeFor(host) : undefined
    if (place === undefined) {
      socket.destroy()
      return
    }
    const transport = new Transport(socket, this.#clock)
    socket.on('data', (bytes) => transport.receive(bytes))
    this.#greeting.set(transport, this.#clock.monotonic())
    const script = answerHandshake({
      answer: (infohash) => this.#torrents.get(wireKey(infohash))?.handshake,
      infohashByMseKey: (key) => this.#byMseKey.get(key)?.handshake.infohash,
      mayEncrypt: () => this.#encrypting.take(hostKey(host), this.#clock.monotonic())
    })
    new Handshaking(
      transport,
      script,
      {
        done: (connection) => {
          this.#greeting.delete(transport)
          this.#torrents.get(wireKey(connection.handshake.infohash))!.connections.accept(connection, place)
        },
        failed: () => {
          this.#greeting.delete(transport)
          place.release()
        }
      },
      { clock: this.#clock, timeoutMs: HANDSHAKE_TIMEOUT_MS }
    )
  }

  /** A place for an incoming connection; if there is none, the least useful existing connection is closed. */
  #placeFor(host: string): ConnectionPlace | undefined {
    const { connections } = this.environment
    let place = connections.acquire('incoming', host)
    if (place === 'full' && this.#displace(this.#clock.monotonic())) place = connections.acquire('incoming', host)
    return typeof place === 'string' ? undefined : place
  }

  /** Closes the oldest connection with an unfinished handshake, or else the peer that has been useless for longest. */
  #displace(nowMs: number): boolean {
    for (const [transport, acceptedAt] of this.#greeting) {
      if (nowMs - acceptedAt < HANDSHAKE_GRACE_MS) break
      transport.close()
      return true
    }
    let worst: ReturnType<PeerSet['mostUseless']>
    for (const torrent of this.#torrents.values()) {
      const found = torrent.connections.mostUseless(nowMs)
      if (found !== undefined && (worst === undefined || found.forMs > worst.forMs)) worst = found
    }
    worst?.peer.close(new SwarmError('E_CLOSED', 'useless', 'another peer takes its place'))
    return worst !== undefined
  }

  #tick(): void {
    const now = this.#clock.monotonic()
    for (const torrent of [...this.#torrents.values()]) guarded(() => torrent.tick(now))()
    if (this.#torrents.size === 0) this.environment.frames.trim()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#timer?.cancel()
    const listening = this.#listener?.close()
    for (const transport of [...this.#greeting.keys()]) transport.close()
    // the threads end also where a storage cannot be closed.
    const removals = await Promise.allSettled([...this.#torrents.values()].map((torrent) => torrent.remove()))
    const { limiter, verifier, http, pool } = this.environment
    limiter.close()
    await Promise.all([listening, this.#local?.close(), this.#dht?.close(), verifier.close(), http.close()])
    pool.trim()
    const failed = removals.find((removal) => removal.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}

function rangesOf(texts: readonly string[]): AddressRanges {
  return new AddressRanges(
    texts.map((text) => {
      const range = tryParseRange(text)
      if (range !== undefined) return range
      throw new SwarmError('E_OPTION', 'trusted', `${JSON.stringify(text)} is not an address range`)
    })
  )
}

function zoneOf(zone: string | undefined): string | undefined {
  if (zone === undefined || isZone(zone)) return zone
  throw new SwarmError('E_OPTION', 'zone', `${JSON.stringify(zone)} is not a zone label`)
}
