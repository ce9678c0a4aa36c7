import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@svc/internal-clock'
import type { Connections } from './connection.ts'
import { HostShares } from './host-shares.ts'

/** Accepted beyond the limit, and closed again in the same turn of the event loop: the newcomer must be compared with the present ones. */
const NEWCOMERS = 64

interface OpenConnection {
  readonly socket: Socket
  readonly sinceMs: number
}

/**
 * Limits the connections of a server that strangers may reach. While all are taken, the host with the most loses one to
 * a host with fewer: the oldest without a request, or else the slowest. One whose client has ended its sending goes
 * first, but never for a host that has as many. Each counts as a `drop` of the server.
 */
export function shareConnections(server: Server, connections: Connections, maxConnections: number, clock: Clock): void {
  const leastOf = (held: ReadonlySet<OpenConnection>): OpenConnection => {
    let least: OpenConnection | undefined
    let leastRate = Number.POSITIVE_INFINITY
    const nowMs = clock.monotonic()
    for (const each of held) {
      const { socket, sinceMs } = each
      if (connections.isIdle(socket)) return each
      const rate = socket.bytesWritten / Math.max(1, nowMs - sinceMs)
      if (rate >= leastRate) continue
      leastRate = rate
      least = each
    }
    return least!
  }
  const shares = new HostShares<OpenConnection>(maxConnections, {
    hasLeft: ({ socket }) => socket.readableEnded,
    leastOf
  })
  server.maxConnections = maxConnections + NEWCOMERS
  server.on('connection', (socket: Socket) => {
    const held = { socket, sinceMs: clock.monotonic() }
    socket.once('close', () => shares.delete(held))
    const going = shares.add(socket.remoteAddress ?? '', held)
    if (going === undefined) return
    going.socket.destroy()
    server.emit('drop')
  })
}
