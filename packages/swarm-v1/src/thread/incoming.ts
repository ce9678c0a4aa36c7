import type { Server, Socket } from 'node:net'
import { type Clock, systemClock } from '@svc/internal-clock'
import { hostKey } from '@svc/internal-net'

export interface IncomingBounds {
  readonly total: number
  /** Of one host; an IPv6 host counts as its /64. */
  readonly perHost: number
  /** When all places are taken, a connection older than this makes room if it was sent hardly anything. */
  readonly graceMs: number
}

/** In total: enough to seed, and few of a process's descriptors. */
export const MAX_INCOMING = 100
const BOUNDS: IncomingBounds = { total: MAX_INCOMING, perHost: 16, graceMs: 15_000 }
/** More than the handshake and the bitfield of most torrents, less than any downloader is sent. */
const HARDLY_ANYTHING_BYTES = 65_536

/**
 * Limits the connections that strangers may open. The library accepts all, and keeps each for 25 seconds without a
 * handshake: they could use up the descriptors of the process. It also takes an error of one connection for the end of
 * the listener.
 *
 * @param accept the library's listener for `connection`
 */
export function boundIncoming(
  server: Server,
  accept: (socket: Socket) => void,
  bounds: Partial<IncomingBounds> = {},
  clock: Pick<Clock, 'monotonic'> = systemClock
): void {
  const { total, perHost, graceMs } = { ...BOUNDS, ...bounds }
  const byHost = new Map<string, number>()
  /** Oldest first, with the time when they came. */
  const open = new Map<Socket, number>()

  const makeRoom = (): boolean => {
    const now = clock.monotonic()
    for (const [socket, acceptedAt] of open) {
      if (now - acceptedAt < graceMs) return false
      if (socket.bytesWritten >= HARDLY_ANYTHING_BYTES) continue
      socket.destroy()
      return true
    }
    return false
  }

  server.removeListener('connection', accept)
  server.on('connection', (socket: Socket) => {
    const host = hostKey(socket.remoteAddress ?? '')
    const ofHost = byHost.get(host) ?? 0
    if (ofHost >= perHost || (open.size >= total && !makeRoom())) {
      socket.on('error', () => undefined)
      socket.destroy()
      return
    }
    open.set(socket, clock.monotonic())
    byHost.set(host, ofHost + 1)
    socket.once('close', () => {
      open.delete(socket)
      const left = byHost.get(host)! - 1
      if (left === 0) byHost.delete(host)
      else byHost.set(host, left)
    })
    accept(socket)
  })
  server.removeAllListeners('error')
  server.on('error', () => undefined)
}
