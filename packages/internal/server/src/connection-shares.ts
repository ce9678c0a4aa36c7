import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@svc/internal-clock'
import type { Connections } from './connection.ts'
import { HostShares } from './host-shares.ts'
import { clientEnd, isLocal, usersOf } from './local-users.ts'

/** Accepted beyond the limit, and closed again in the same turn of the event loop: the newcomer must be compared with the present ones. */
const NEWCOMERS = 64
/** Limit of clients on this machine that are served without a place, until it is known who they are. */
const MAX_GUESTS = 256
/** Clients on this machine count as one user until it is known who they are. */
const LOCAL = 'local'
const TELLS_USERS = process.platform === 'linux'

interface OpenConnection {
  readonly socket: Socket
  readonly host: string
  /** Of the client, if it is on this machine. */
  readonly end: string
  readonly sinceMs: number
}

/**
 * Limits the connections of a server that strangers may reach. While all are taken, the host with the most loses one to
 * a host with fewer: the oldest without a request, or else the slowest. One whose client has ended its sending goes
 * first, but never for a host that has as many. Each counts as a `drop` of the server.
 *
 * A user of this machine has many addresses, and counts as one host, where the system says who began a connection. That
 * takes a moment: while all places are taken, newcomers from this machine are guests until it is known, and then get a
 * place or none.
 */
export function shareConnections(server: Server, connections: Connections, maxConnections: number, clock: Clock): void {
  const least = (held: ReadonlySet<OpenConnection>): OpenConnection => leastOf(held, connections, clock.monotonic())
  const shares = new HostShares<OpenConnection>(maxConnections, {
    hasLeft: ({ socket }) => socket.readableEnded,
    leastOf: least
  })
  /** With a place, but unknown. */
  const unknown = new Set<OpenConnection>()
  const guests = new Set<OpenConnection>()
  const drop = ({ socket }: OpenConnection): void => {
    // leaves nothing behind, which closing does for a minute
    socket.resetAndDestroy()
    server.emit('drop')
  }
  const place = (held: OpenConnection, user?: string): void => {
    const going = shares.add(held.host, held, user)
    if (going !== undefined) drop(going)
    if (user === LOCAL && going !== held) unknown.add(held)
  }
  const receive = (held: OpenConnection): void => {
    if (guests.size >= MAX_GUESTS) {
      const going = least(guests)
      guests.delete(going)
      drop(going)
    }
    guests.add(held)
    void look()
  }
  let isLooking = false
  const look = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    while (guests.size > 0) {
      const asked = [...unknown, ...guests]
      const users = await usersOf(
        asked.map(({ end }) => end),
        clock
      )
      // first those with a place, with whom the guests are compared
      for (const held of asked) {
        const user = users.get(held.end)
        if (guests.delete(held)) place(held, user ?? LOCAL)
        else if (user !== undefined && unknown.delete(held)) shares.assign(held, user)
      }
    }
    isLooking = false
  }
  server.maxConnections = maxConnections + MAX_GUESTS + NEWCOMERS
  server.on('connection', (socket: Socket) => {
    const { remoteAddress: host } = socket
    // it has left already
    if (host === undefined) return void socket.destroy()
    const isHere = isLocal(socket)
    const held = { socket, host, end: isHere ? clientEnd(socket) : '', sinceMs: clock.monotonic() }
    socket.once('close', () => {
      for (const each of [shares, unknown, guests]) each.delete(held)
    })
    if (!isHere) place(held)
    else if (TELLS_USERS && shares.size >= maxConnections) receive(held)
    else place(held, LOCAL)
  })
}

function leastOf(held: ReadonlySet<OpenConnection>, connections: Connections, nowMs: number): OpenConnection {
  let least: OpenConnection | undefined
  let leastRate = Number.POSITIVE_INFINITY
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
