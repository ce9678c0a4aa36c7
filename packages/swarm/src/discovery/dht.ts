/// <reference path="./untyped.d.ts" />

import { isIP } from 'node:net'
import { isPublicAddress, type PeerAddress, tryParseAddress } from '@svc/internal-net'
import { truncateInfohash } from '@svc/metainfo'
import DHT from 'bittorrent-dht'
import type { Discovery, DiscoverySink } from './discovery.ts'

export interface DhtOptions {
  /** `host:port` of nodes to start from. */
  readonly bootstrap: readonly string[]
  readonly host?: string
  readonly port?: number
}

const REANNOUNCE_MS = 15 * 60_000
/** While nobody was found: a young routing table. */
const RETRY_MS = 2_000
/** Peers taken from one lookup. */
const MAX_PEERS = 200

/** One DHT node (BEP 5, IPv4) for all torrents of an engine. */
export class DhtNode {
  readonly #dht: InstanceType<typeof DHT>
  readonly #sinks = new Map<string, { readonly sink: DiscoverySink; taken: number }>()
  readonly #bootstrapPrivate: boolean
  #closed = false

  private constructor(dht: InstanceType<typeof DHT>, bootstrapPrivate: boolean) {
    this.#dht = dht
    this.#bootstrapPrivate = bootstrapPrivate
    dht.on('peer', (peer: unknown, infohash: unknown) => this.#peer(peer, infohash))
  }

  static async start(options: DhtOptions): Promise<DhtNode> {
    const nodes = options.bootstrap.map(tryParseAddress).filter((node) => node !== undefined)
    const dht = new DHT({
      bootstrap: nodes.length > 0 ? nodes.map((node) => `${node.host}:${node.port}`) : false,
      maxAge: REANNOUNCE_MS
    })
    // Errors of single lookups are of no consequence; those of the socket end the announcing only.
    dht.on('error', () => undefined)
    dht.on('warning', () => undefined)
    await new Promise<void>((resolve, reject) => {
      dht.once('error', reject)
      dht.listen(options.port ?? 0, options.host ?? '0.0.0.0', () => resolve())
    })
    // A DHT that is bootstrapped on private addresses only is a private one.
    const isPrivate = nodes.length > 0 && nodes.every((node) => isIP(node.host) !== 0 && !isPublicAddress(node.host))
    return new DhtNode(dht, isPrivate)
  }

  get port(): number {
    return this.#dht.address().port
  }

  addNode(node: PeerAddress): void {
    if (!this.#closed) this.#dht.addNode(node)
  }

  #peer(peer: unknown, infohash: unknown): void {
    const entry = this.#sinks.get(Buffer.isBuffer(infohash) ? infohash.toString('hex') : String(infohash))
    if (entry === undefined || entry.taken >= MAX_PEERS) return
    const { host, port } = peer as { host?: unknown; port?: unknown }
    if (typeof host !== 'string' || typeof port !== 'number' || isIP(host) !== 4 || port < 1 || port > 65_535) return
    entry.taken += 1
    entry.sink.peer({ host, port }, this.#bootstrapPrivate)
  }

  /** Looks for peers of a torrent and (with `port`) announces it. */
  join(infohash: Uint8Array, port: number | undefined, sink: DiscoverySink): Discovery {
    const key = Buffer.from(truncateInfohash(infohash)).toString('hex')
    const entry = { sink, taken: 0 }
    this.#sinks.set(key, entry)
    let timer: NodeJS.Timeout | undefined
    let closed = false
    const round = (): void => {
      if (closed || this.#closed) return
      entry.taken = 0
      const again = (): void => {
        if (closed || this.#closed || timer !== undefined) return
        timer = setTimeout(
          () => {
            timer = undefined
            round()
          },
          entry.taken > 0 ? REANNOUNCE_MS : RETRY_MS
        )
        timer.unref()
      }
      // A lookup that cannot be made yet (no nodes) calls back with an error: tried again.
      if (port === undefined) this.#dht.lookup(key, again)
      else {
        this.#dht.announce(key, port, () => this.#closed || this.#dht.lookup(key, again))
      }
    }
    round()
    return {
      completed: () => undefined,
      close: async () => {
        closed = true
        if (timer !== undefined) clearTimeout(timer)
        this.#sinks.delete(key)
      }
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await new Promise<void>((resolve) => this.#dht.destroy(() => resolve()))
  }
}
