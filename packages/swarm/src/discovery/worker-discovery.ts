import type { Clock } from '@svc/internal-clock'
import type { DhtOptions } from '@svc/internal-discovery'
import type { PeerAddress } from '@svc/internal-net'
import type { ThreadFault } from '@svc/internal-workers'
import { DhtThread } from './dht.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'
import { TrackerThread } from './trackers.ts'

/** A torrent to find peers for. */
export interface DiscoverTorrent {
  /** v2, 32 bytes. */
  readonly infohash: Uint8Array
  readonly trackers: readonly string[]
  readonly peerId: Uint8Array
  /** The port on which peers can reach us; undefined without a listener. */
  readonly port: number | undefined
  /** Whether to announce it to the DHT and look it up there. */
  readonly dht: boolean
  readonly sink: DiscoverySink
}

/** Announced when there is no listener: trackers require a port, and nobody can connect to this one. */
const NO_PORT = 1

/**
 * Finds peers for an engine, in all ways but peer exchange: a thread for the DHT, and one for trackers, started with
 * the first torrent that has any. A crash in one interrupts discovery for a moment, and nothing else.
 */
export class WorkerDiscovery {
  readonly #clock: Clock
  readonly #onFault: (fault: ThreadFault) => void
  #dht: DhtThread | undefined
  #trackers: TrackerThread | undefined

  /** @param onFault called once per crash of a thread */
  constructor(clock: Clock, onFault: (fault: ThreadFault) => void) {
    this.#clock = clock
    this.#onFault = onFault
  }

  /** @throws the system's error when the port is unavailable. */
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
      this.#trackers ??= new TrackerThread(this.#clock, this.#onFault)
      found.push(this.#trackers.join({ urls: trackers, infohash, peerId, port: port ?? NO_PORT, sink }))
    }
    if (dht && this.#dht !== undefined) found.push(this.#dht.join(infohash, port, sink))
    return found
  }

  async close(): Promise<void> {
    await Promise.all([this.#dht?.close(), this.#trackers?.close()])
  }
}
