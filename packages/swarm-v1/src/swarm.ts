import { type Clock, systemClock } from '@svc/internal-clock'
import type { DownloadLimit } from '@svc/internal-net'
import { SupervisedThread, type ThreadFault, workerUrl } from '@svc/internal-workers'
import { SwarmV1Error } from './errors.ts'
import { parseV1Torrent, type V1Layout } from './layout.ts'
import { type FromThread, parseFromThread, type ToThread } from './messages.ts'
import { JoinedTorrent, type V1JoinOptions, type V1Torrent } from './torrent.ts'

/** Options of a swarm client. */
export interface V1SwarmOptions {
  /** The address on which peers can reach us; port 0: any free one. */
  readonly peerAddress: { readonly host: string; readonly port: number }
  /** `false` disables DHT and peer exchange; a list replaces the DHT's bootstrap nodes. */
  readonly dht: boolean | readonly string[]
  /**
   * Where the listing comes from, on whose word trackers are contacted: this machine, a private network, the internet. With `internet`,
   * only public addresses are dialled, of trackers and of peers that trackers, the DHT and other peers name. Addresses in
   * {@link V1JoinOptions.peers} come from the user and are always dialled.
   */
  readonly policy: 'machine' | 'network' | 'internet'
  /** Limit over all torrents; 0 is unlimited. */
  readonly uploadLimitBytesPerSecond: number
  /** A limit of what all torrents receive together, which other receivers of the program may share. Default: none. */
  readonly downloads?: DownloadLimit | undefined
  /** Called once per fault: the thread crashed or hung, and restarts after a pause. */
  readonly onFault?: (fault: ThreadFault) => void
  /** As `parseV1Torrent`, e.g. in a thread: strangers send the metadata. Default: on the thread of the caller. */
  readonly parse?: (info: Uint8Array, infohash: string) => Promise<V1Layout>
  /** Default: the system's. */
  readonly clock?: Clock
}

/** Bootstrap nodes for `dht: true`. */
const PUBLIC_DHT_NODES = ['router.bittorrent.com:6881', 'router.utorrent.com:6881', 'dht.transmissionbt.com:6881']
const CLOSE_GRACE_MS = 5_000

/**
 * BitTorrent v1 swarms through webtorrent: TCP peers, HTTP and UDP trackers, DHT and peer exchange. All of it runs in a
 * thread that may crash; a new one then joins the torrents again, while the storages stay here. Messages from peers are
 * bounded and checked before webtorrent sees them, and `parseV1Torrent` validates metadata.
 */
export class V1Swarm {
  readonly #thread: SupervisedThread<ToThread, FromThread>
  readonly #torrents = new Map<number, JoinedTorrent>()
  readonly #listening = Promise.withResolvers<void>()
  #address: { readonly host: string; readonly port: number } | undefined
  /** The port to restart on. */
  #again: number | undefined
  readonly #clock: Clock
  readonly #parse: NonNullable<V1SwarmOptions['parse']>
  #nextId = 1
  #closing: Promise<void> | undefined

  private constructor(options: V1SwarmOptions) {
    this.#clock = options.clock ?? systemClock
    this.#parse = options.parse ?? (async (info, infohash) => parseV1Torrent(info, infohash))
    const { host, port } = options.peerAddress
    const bootstrap = typeof options.dht === 'object' ? options.dht : PUBLIC_DHT_NODES
    this.#thread = new SupervisedThread({
      name: 'bittorrent-v1',
      clock: this.#clock,
      url: workerUrl('./worker', import.meta.url),
      data: () => ({
        host,
        port: this.#again ?? port,
        dhtBootstrap: options.dht === false ? undefined : bootstrap,
        policy: options.policy,
        uploadLimitBytesPerSecond: options.uploadLimitBytesPerSecond,
        limit: options.downloads?.memory
      }),
      parse: parseFromThread,
      received: (message) => this.#received(message, host),
      started: () => {
        for (const torrent of this.#torrents.values()) torrent.joinThread()
      },
      crashed: (fault) => {
        if (this.#address === undefined) this.#listening.reject(fault.error)
        for (const torrent of this.#torrents.values()) torrent.lostThread()
        options.onFault?.(fault)
      }
    })
  }

  /** @throws SwarmV1Error `E_SWARM_V1`, reason `client`, when the port is unavailable. */
  static async start(options: V1SwarmOptions): Promise<V1Swarm> {
    const swarm = new V1Swarm(options)
    try {
      await swarm.#listening.promise
      return swarm
    } catch (cause) {
      await swarm.close()
      const { host, port } = options.peerAddress
      throw new SwarmV1Error('E_SWARM_V1', 'client', `the swarm client cannot listen on ${host}:${port}`, { cause })
    }
  }

  /** The address that peers connect to. */
  get address(): { readonly host: string; readonly port: number } {
    if (this.#closing !== undefined) throw new SwarmV1Error('E_SWARM_V1', 'client', 'the swarm client is closed')
    return this.#address!
  }

  /** The torrents that were joined and not left. */
  get torrents(): ReadonlySet<V1Torrent> {
    return new Set(this.#torrents.values())
  }

  join(options: V1JoinOptions): V1Torrent {
    if (this.#closing !== undefined) throw new SwarmV1Error('E_SWARM_V1', 'client', 'the swarm client is closed')
    const id = this.#nextId++
    const torrent = new JoinedTorrent(id, options, {
      post: (message) => this.#thread.post(message),
      clock: this.#clock,
      parse: this.#parse,
      running: () => this.#thread.running,
      left: () => void this.#torrents.delete(id)
    })
    this.#torrents.set(id, torrent)
    return torrent
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.all([...this.#torrents.values()].map((torrent) => torrent.leave()))
      await this.#thread.close({ kind: 'close' }, CLOSE_GRACE_MS)
    })()
    return this.#closing
  }

  #received(message: FromThread, host: string): void {
    switch (message.kind) {
      case 'listening':
        this.#address = { host: message.host, port: message.port }
        this.#again = message.port
        return this.#listening.resolve()
      case 'unable':
        // another program may have taken the port after a crash: the next start takes any.
        this.#again = undefined
        return this.#listening.reject(new Error(`${host}: ${message.message}`))
      default:
        this.#torrents.get(message.id)?.received(message)
    }
  }
}
