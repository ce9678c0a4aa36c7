// The parts that are used of two packages without declarations of their own.

declare module 'bittorrent-tracker/client' {
  import type { EventEmitter } from 'node:events'
  export default class Client extends EventEmitter {
    constructor(options: {
      readonly infoHash: Uint8Array
      readonly peerId: Uint8Array
      readonly announce: readonly string[]
      readonly port: number
      readonly getAnnounceOpts?: () => object
      readonly wrtc?: false
    })
    /** Not public; one for each URL that it understood. */
    readonly _trackers: readonly { setInterval(intervalMs?: number): void }[]
    start(): void
    stop(): void
    complete(): void
    update(): void
    destroy(callback: () => void): void
  }
}

declare module 'bittorrent-dht' {
  import type { EventEmitter } from 'node:events'
  export default class DHT extends EventEmitter {
    constructor(options: { readonly bootstrap: readonly string[] | false; readonly maxAge?: number })
    listen(port: number, host: string, listening: () => void): void
    address(): { readonly port: number }
    addNode(node: { readonly host: string; readonly port: number }): void
    announce(infohash: string, port: number, done: (error?: Error) => void): void
    lookup(infohash: string, done: (error?: Error) => void): void
    destroy(done: () => void): void
  }
}
