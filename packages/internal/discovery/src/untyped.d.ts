// The subset that is used of a package without types.

declare module 'bittorrent-dht' {
  import type { EventEmitter } from 'node:events'
  export default class DHT extends EventEmitter {
    constructor(options: {
      readonly bootstrap: readonly string[] | false
      readonly maxAge?: number
      /** Passed on to its datagram layer, which otherwise creates one of its own. */
      readonly socket?: EventEmitter
    })
    listen(port: number, host: string, listening: () => void): void
    address(): { readonly port: number }
    announce(infohash: string, port: number, done: (error?: Error) => void): void
    lookup(infohash: string, done: (error?: Error) => void): void
    destroy(done: () => void): void
  }
}
