/// <reference path="./tracker-server.d.ts" />
import Server from 'bittorrent-tracker/server'

export interface LocalTracker {
  readonly http: string
  readonly udp: string
  close(): Promise<void>
}

export interface TrackerOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default: any free one. */
  readonly port?: number
  /** Between announces, as it asks for them. */
  readonly intervalMs?: number
}

/** A tracker, HTTP and UDP. */
export async function startTracker({
  host = '127.0.0.1',
  port = 0,
  intervalMs = 1_000
}: TrackerOptions = {}): Promise<LocalTracker> {
  const server = new Server({ http: true, udp: true, ws: false, stats: false, interval: intervalMs })
  server.on('error', () => undefined)
  server.on('warning', () => undefined)
  await new Promise<void>((resolve) => server.listen(port, { http: host, udp: host, udp6: '::1' }, resolve))
  return {
    http: `http://${host}:${server.http.address().port}/announce`,
    udp: `udp://${host}:${server.udp.address().port}/announce`,
    close: () => new Promise((resolve) => server.close(() => resolve()))
  }
}
