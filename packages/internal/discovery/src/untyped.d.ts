// What is used of a package without declarations of its own.

declare module 'bittorrent-dht' {
  import type { EventEmitter } from 'node:events'
  export default class DHT extends EventEmitter {
    constructor(options: {
      readonly bootstrap: readonly string[] | false
      readonly maxAge?: number
      /** Handed on to its datagram layer, which makes one of its own otherwise. */
      readonly socket?: EventEmitter
    })
    listen(port: number, host: string, listening: () => void): void
    address(): { readonly port: number }
    addNode(node: { readonly host: string; readonly port: number }): void
    announce(infohash: string, port: number, done: (error?: Error) => void): void
    lookup(infohash: string, done: (error?: Error) => void): void
    destroy(done: () => void): void
  }
}
