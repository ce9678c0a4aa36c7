import type { DhtOptions } from '@svc/internal-discovery'
import type { PeerAddress } from '@svc/internal-net'
import type { ThreadFault } from '@svc/internal-workers'
import { DhtThread } from './dht.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'
import { TrackerThread } from './trackers.ts'

/** What is to be found out for one torrent. */
export interface DiscoverTorrent {
  /** v2, 32 bytes. */
  readonly infohash: Uint8Array
  readonly trackers: readonly string[]
  readonly peerId: Uint8Array
  /** Where peers reach us; undefined without a listener. */
  readonly port: number | undefined
  /** Whether the DHT may know of it. */
  readonly dht: boolean
  readonly sink: DiscoverySink
}

/** A tracker must be told a port: at this one nobody can be reached. */
const NO_PORT = 1

/**
 * The ways in which an engine finds peers beside peer exchange: one thread for the DHT, and one for trackers from the
 * first torrent on that has any. A crash there costs discovery for a moment, and nothing else.
 */
export class WorkerDiscovery {
  readonly #onFault: (fault: ThreadFault) => void
  #dht: DhtThread | undefined
  #trackers: TrackerThread | undefined

  /** @param onFault called once for each crash of a thread */
  constructor(onFault: (fault: ThreadFault) => void) {
    this.#onFault = onFault
  }

  /** @throws the system's error when the port cannot be had. */
  async startDht(options: DhtOptions): Promise<void> {
    this.#dht = await DhtThread.start(options, this.#onFault)
  }

  /** UDP; undefined without a DHT. */
  get dhtPort(): number | undefined {
    return this.#dht?.port
  }

  addDhtNode(node: PeerAddress): void {
    this.#dht?.addNode(node)
  }

  join({ infohash, trackers, peerId, port, dht, sink }: DiscoverTorrent): readonly Discovery[] {
    const found: Discovery[] = []
    if (trackers.length > 0) {
      this.#trackers ??= new TrackerThread(this.#onFault)
      found.push(this.#trackers.join({ urls: trackers, infohash, peerId, port: port ?? NO_PORT, sink }))
    }
    if (dht && this.#dht !== undefined) found.push(this.#dht.join(infohash, port, sink))
    return found
  }

  async close(): Promise<void> {
    await Promise.all([this.#dht?.close(), this.#trackers?.close()])
  }
}
