/// <reference path="./tracker-server.d.ts" />
import Server from 'bittorrent-tracker/server'

export interface LocalTracker {
  readonly http: string
  readonly udp: string
  close(): Promise<void>
}

/** A tracker on 127.0.0.1, HTTP and UDP. */
export async function startTracker(): Promise<LocalTracker> {
  const server = new Server({ http: true, udp: true, ws: false, stats: false, interval: 1000 })
  server.on('error', () => undefined)
  server.on('warning', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, { http: '127.0.0.1', udp: '127.0.0.1', udp6: '::1' }, resolve))
  return {
    http: `http://127.0.0.1:${server.http.address().port}/announce`,
    udp: `udp://127.0.0.1:${server.udp.address().port}/announce`,
    close: () => new Promise((resolve) => server.close(() => resolve()))
  }
}
