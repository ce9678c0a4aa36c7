/// <reference path="./untyped.d.ts" />

import { isIP } from 'node:net'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { isPort, isPublicAddress, type PeerAddress, tryParseAddress } from '@svc/internal-net'
import DHT from 'bittorrent-dht'
import { CheckedSocket, type DatagramLimits } from './checked-socket.ts'
import { checkKrpc } from './krpc.ts'

export interface DhtOptions {
  /** `host:port` of bootstrap nodes; invalid ones are ignored. */
  readonly bootstrap: readonly string[]
  /** The address to listen on; default `0.0.0.0`. */
  readonly host?: string
  /** Default: any free one. */
  readonly port?: number
  /** Traffic limits that differ from the defaults. */
  readonly limits?: Partial<DatagramLimits>
}

/** `allowPrivate`: the DHT is a private one, which may name private addresses. */
type FoundPeer = (peer: PeerAddress, allowPrivate: boolean) => void

const REANNOUNCE_MS = 15 * 60_000
/** After a lookup without results, when the routing table is young; doubles up to the interval above. */
const FIRST_RETRY_MS = 2_000
/** Limit of peers taken from one lookup. */
const MAX_PEERS = 200

/**
 * One DHT node (BEP 5, IPv4) for any number of torrents, based on `bittorrent-dht`, which sees only validated
 * datagrams. Runs in a thread of its own: a defect that validation misses ends the thread, not the process.
 */
export class DhtNode {
  readonly #dht: InstanceType<typeof DHT>
  readonly #private: boolean
  readonly #found = new Map<string, { readonly found: FoundPeer; taken: number; timer: Timer | undefined }>()
  readonly #clock: Clock
  #closed = false

  private constructor(dht: InstanceType<typeof DHT>, isPrivate: boolean, clock: Clock) {
    this.#clock = clock
    this.#dht = dht
    this.#private = isPrivate
    dht.on('peer', (peer: unknown, infohash: unknown) => this.#peer(peer, infohash))
  }

  /** @throws the system's error when the port is unavailable. */
  static async start(options: DhtOptions, clock: Clock = systemClock): Promise<DhtNode> {
    const nodes = options.bootstrap.map(tryParseAddress).filter((node) => node !== undefined)
    // a DHT with private bootstrap nodes only is a private one.
    const isPrivate = nodes.length > 0 && nodes.every((node) => isIP(node.host) !== 0 && !isPublicAddress(node.host))
    const dht = new DHT({
      bootstrap: nodes.length > 0 ? nodes.map((node) => `${node.host}:${node.port}`) : false,
      maxAge: REANNOUNCE_MS,
      socket: new CheckedSocket(
        (datagram) => checkKrpc(datagram, isPrivate || nodes.length === 0),
        options.limits,
        clock
      )
    })
    // errors of single lookups do not matter; those of the socket end announcing only.
    dht.on('error', () => undefined)
    dht.on('warning', () => undefined)
    try {
      await new Promise<void>((resolve, reject) => {
        dht.once('error', reject)
        dht.listen(options.port ?? 0, options.host ?? '0.0.0.0', () => resolve())
      })
    } catch (error) {
      dht.destroy(() => undefined)
      throw error
    }
    return new DhtNode(dht, isPrivate, clock)
  }

  get port(): number {
    return this.#dht.address().port
  }

  /**
   * Looks up peers of a torrent and, given a `port`, announces it.
   * @param infohash 40 hex characters: that of BitTorrent v1, or the truncated one of v2 (BEP 52)
   */
  join(infohash: string, port: number | undefined, found: FoundPeer): void {
    this.leave(infohash)
    const entry = { found, taken: 0, timer: undefined as Timer | undefined }
    let retryMs = FIRST_RETRY_MS
    this.#found.set(infohash, entry)
    const over = (): boolean => this.#closed || this.#found.get(infohash) !== entry
    const round = (): void => {
      entry.timer = undefined
      if (over()) return
      entry.taken = 0
      const again = (): void => {
        if (over() || entry.timer !== undefined) return
        entry.timer = this.#clock.after(entry.taken > 0 ? REANNOUNCE_MS : retryMs, round)
        retryMs = entry.taken > 0 ? FIRST_RETRY_MS : Math.min(REANNOUNCE_MS, retryMs * 2)
      }
      // a lookup that is not possible yet (no nodes) calls back with an error, and is retried.
      if (port === undefined) this.#dht.lookup(infohash, again)
      else this.#dht.announce(infohash, port, () => over() || this.#dht.lookup(infohash, again))
    }
    round()
  }

  leave(infohash: string): void {
    this.#found.get(infohash)?.timer?.cancel()
    this.#found.delete(infohash)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const infohash of [...this.#found.keys()]) this.leave(infohash)
    await new Promise<void>((resolve) => this.#dht.destroy(() => resolve()))
  }

  #peer(peer: unknown, infohash: unknown): void {
    const entry = this.#found.get(Buffer.isBuffer(infohash) ? infohash.toString('hex') : String(infohash))
    if (entry === undefined || entry.taken >= MAX_PEERS) return
    const { host, port } = peer as { host?: unknown; port?: unknown }
    if (typeof host !== 'string' || typeof port !== 'number' || isIP(host) !== 4 || !isPort(port)) return
    entry.taken += 1
    entry.found({ host, port }, this.#private)
  }
}
