import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import type { Clock, Timer } from '@svc/internal-clock'
import { PerSecond } from '@svc/internal-net'
import { guarded } from '../net/guarded.ts'
import { formatLsd, LSD_GROUPS, LSD_PORT, MAX_LSD_INFOHASHES, tryParseLsd } from '../wire/lsd.ts'
import { wireKey } from '../wire/wire-key.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'

/** Interval between announces of a torrent (BEP 14: no more often than every five minutes). */
const INTERVAL_MS = 300_000
/** Torrents joined within this time share a datagram. */
const GATHER_MS = 500
/** Limit of addresses accepted per second; a flood beyond that is ignored. */
const PER_SECOND = 50

/**
 * Local service discovery of an engine: announces its torrents to the local network by multicast, and listens to
 * others. Announces get no reply; peers that have the torrent connect.
 *
 * Invariant: nothing is sent after `close`.
 */
export class LocalDiscovery {
  readonly #port: number
  readonly #clock: Clock
  readonly #cookie = randomBytes(8).toString('hex')
  readonly #torrents = new Map<string, DiscoverySink>()
  readonly #sockets: readonly { readonly socket: Socket; readonly family: 4 | 6 }[]
  readonly #due = new Set<string>()
  readonly #interval: Timer
  readonly #accepted = new PerSecond({ total: PER_SECOND })
  #gathering: Timer | undefined
  #closed = false

  /** @param port on which peers can reach the engine */
  constructor(port: number, clock: Clock) {
    this.#port = port
    this.#clock = clock
    this.#sockets = ([4, 6] as const).map((family) => ({ socket: this.#open(family), family }))
    const announceAll = guarded(() => {
      for (const key of this.#torrents.keys()) this.#due.add(key)
      this.#announce()
    })
    this.#interval = clock.every(INTERVAL_MS, announceAll)
  }

  #open(family: 4 | 6): Socket {
    const socket = createSocket({ type: family === 4 ? 'udp4' : 'udp6', reuseAddr: true, ipv6Only: family === 6 })
    // without a network, or without this address family, there is nothing to do
    socket.on('error', () => undefined)
    socket.on(
      'message',
      guarded((datagram, from) => this.#received(datagram, from.address.replace(/%.*$/, '')))
    )
    // a socket that is bound to the group gets no datagrams to this machine alone, which may come from anywhere. Only
    // Linux lets such a socket send.
    const address = process.platform === 'linux' ? { address: LSD_GROUPS[family] } : {}
    socket.bind(
      { port: LSD_PORT, ...address },
      guarded(() => {
        for (const { address, index } of interfacesOf(family)) {
          try {
            socket.addMembership(LSD_GROUPS[family], family === 4 ? address : `::%${index}`)
          } catch {
            // an interface without multicast
          }
        }
      })
    )
    socket.unref()
    return socket
  }

  join(infohash: Uint8Array, sink: DiscoverySink): Discovery {
    const key = wireKey(infohash)
    this.#torrents.set(key, sink)
    this.#due.add(key)
    if (this.#gathering === undefined && !this.#closed) {
      const announce = guarded(() => {
        this.#gathering = undefined
        this.#announce()
      })
      this.#gathering = this.#clock.after(GATHER_MS, announce)
    }
    return {
      close: async () => {
        if (this.#torrents.get(key) !== sink) return
        this.#torrents.delete(key)
        this.#due.delete(key)
      }
    }
  }

  #announce(): void {
    if (this.#closed) return
    const infohashes = [...this.#due]
    this.#due.clear()
    for (let at = 0; at < infohashes.length; at += MAX_LSD_INFOHASHES) {
      const announce = {
        port: this.#port,
        infohashes: infohashes.slice(at, at + MAX_LSD_INFOHASHES),
        cookie: this.#cookie
      }
      for (const { socket, family } of this.#sockets)
        this.#send(socket, family, Buffer.from(formatLsd(announce, family)))
    }
  }

  #send(socket: Socket, family: 4 | 6, datagram: Buffer): void {
    for (const { address, index } of interfacesOf(family)) {
      try {
        socket.setMulticastInterface(family === 4 ? address : `::%${index}`)
        socket.send(datagram, LSD_PORT, LSD_GROUPS[family], () => undefined)
      } catch {
        // the interface is gone, or the socket is not bound
      }
    }
  }

  #received(datagram: Uint8Array, host: string): void {
    if (!this.#accepted.take('', this.#clock.monotonic())) return
    const announce = tryParseLsd(datagram)
    if (announce === undefined || announce.cookie === this.#cookie) return
    // multicast is heard only within the same network
    for (const infohash of announce.infohashes) this.#torrents.get(infohash)?.peer({ host, port: announce.port }, true)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#interval.cancel()
    this.#gathering?.cancel()
    await Promise.all(
      this.#sockets.map(
        ({ socket }) =>
          new Promise<void>((resolve) => {
            try {
              socket.close(() => resolve())
            } catch {
              // it could not be bound
              resolve()
            }
          })
      )
    )
  }
}

/** The addresses of this machine to listen and send on; the system may refuse to list them. */
function interfacesOf(family: 4 | 6): readonly { readonly address: string; readonly index: string }[] {
  let all: NodeJS.Dict<NetworkInterfaceInfo[]>
  try {
    all = networkInterfaces()
  } catch {
    return []
  }
  return Object.entries(all).flatMap(([index, addresses]) =>
    (addresses ?? [])
      .filter(({ internal, family: its }) => !internal && its === `IPv${family}`)
      // one of an interface's IPv6 addresses is enough: the interface is identified by its index
      .slice(0, family === 4 ? undefined : 1)
      .map(({ address }) => ({ address, index }))
  )
}
