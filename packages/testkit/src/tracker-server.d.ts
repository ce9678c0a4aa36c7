// The subset that is used of a package without types.

declare module 'bittorrent-tracker/server' {
  import type { EventEmitter } from 'node:events'

  interface Listening {
    address(): { readonly port: number }
  }
  export default class Server extends EventEmitter {
    constructor(options: {
      readonly http: boolean
      readonly udp: boolean
      readonly ws: boolean
      readonly stats: boolean
      readonly interval?: number
    })
    readonly http: Listening
    readonly udp: Listening
    listen(
      port: number,
      hosts: { readonly http: string; readonly udp: string; readonly udp6: string },
      listening: () => void
    ): void
    close(done: () => void): void
  }
}
