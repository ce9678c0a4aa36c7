import type { DhtOptions } from '@svc/internal-discovery'
import { isHost, isPort, type PeerAddress } from '@svc/internal-net'
import { SupervisedThread, type ThreadFault, workerUrl } from '@svc/internal-workers'
import { wireKey } from '../wire/wire-key.ts'
import type { Discovery, DiscoverySink } from './discovery.ts'

/** Messages to the thread. */
export type ToDht =
  | { readonly kind: 'join'; readonly infohash: string; readonly port: number | undefined }
  | { readonly kind: 'leave'; readonly infohash: string }
  | { readonly kind: 'close' }

/** Messages from the thread. */
export type FromDht =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'peer'; readonly infohash: string; readonly peer: PeerAddress; readonly allowPrivate: boolean }

const CLOSE_GRACE_MS = 2_000

interface DhtJoin {
  readonly port: number | undefined
  readonly sink: DiscoverySink
}

/** The engine's DHT node, in a thread. After a crash it restarts on the same port and looks up all torrents again. */
export class DhtThread {
  readonly #thread: SupervisedThread<ToDht, FromDht>
  readonly #joined = new Map<string, DhtJoin>()
  readonly #listening = Promise.withResolvers<void>()
  #port: number | undefined
  /** The port to restart on. */
  #again: number | undefined

  private constructor(options: DhtOptions, fault: (fault: ThreadFault) => void) {
    this.#thread = new SupervisedThread({
      name: 'dht',
      url: workerUrl('./dht-worker', import.meta.url),
      data: () => ({
        bootstrap: options.bootstrap,
        host: options.host ?? '0.0.0.0',
        port: this.#again ?? options.port ?? 0,
        limits: options.limits
      }),
      parse: parseFromDht,
      received: (message) => this.#received(message),
      started: () => {
        // the first start happens in the constructor, before any torrent has joined.
        for (const [infohash, { port }] of this.#joined) this.#thread.post({ kind: 'join', infohash, port })
      },
      crashed: (crash) => {
        // another program may have taken the port in the meantime.
        if ((crash.error as NodeJS.ErrnoException).code === 'EADDRINUSE') this.#again = undefined
        if (this.#port === undefined) this.#listening.reject(crash.error)
        else fault(crash)
      }
    })
  }

  /** @throws the system's error when the port is unavailable. */
  static async start(options: DhtOptions, fault: (fault: ThreadFault) => void): Promise<DhtThread> {
    const dht = new DhtThread(options, fault)
    try {
      await dht.#listening.promise
    } catch (error) {
      await dht.close()
      throw error
    }
    return dht
  }

  get port(): number {
    return this.#port!
  }

  /** Looks up peers of a torrent and, given a `port`, announces it. */
  join(infohash: Uint8Array, port: number | undefined, sink: DiscoverySink): Discovery {
    const key = wireKey(infohash)
    const joined = { port, sink }
    this.#joined.set(key, joined)
    this.#thread.post({ kind: 'join', infohash: key, port })
    return {
      close: async () => {
        if (this.#joined.get(key) !== joined) return
        this.#joined.delete(key)
        this.#thread.post({ kind: 'leave', infohash: key })
      }
    }
  }

  close(): Promise<void> {
    return this.#thread.close({ kind: 'close' }, CLOSE_GRACE_MS)
  }

  #received(message: FromDht): void {
    if (message.kind === 'peer') {
      this.#joined.get(message.infohash)?.sink.peer(message.peer, message.allowPrivate)
      return
    }
    this.#port = message.port
    this.#again = message.port
    this.#listening.resolve()
  }
}

/** Checks a message of the thread as if it came from a stranger. @throws TypeError unless it is a {@link FromDht} */
function parseFromDht(message: unknown): FromDht {
  const { kind, port, infohash, peer, allowPrivate } = message as Readonly<Record<string, unknown>>
  if (kind === 'listening' && isPort(port as number)) return { kind, port: port as number }
  if (kind === 'peer' && typeof infohash === 'string' && typeof allowPrivate === 'boolean') {
    const { host, port } = peer as PeerAddress
    if (typeof host === 'string' && isHost(host) && isPort(port))
      return { kind, infohash, peer: { host, port }, allowPrivate }
  }
  throw new TypeError(`a thread sent an unknown message: ${String(kind)}`)
}
