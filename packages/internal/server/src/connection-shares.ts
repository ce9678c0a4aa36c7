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
  server.maxConnections = maxConnections + MAX_GUESTS + NEWCOMERS
  const shares = new ConnectionShares(server, connections, maxConnections, clock)
  server.on('connection', (socket: Socket) => shares.receive(socket))
}

class ConnectionShares {
  readonly #server: Server
  readonly #clock: Clock
  readonly #shares: HostShares<OpenConnection>
  readonly #leastOf: (held: ReadonlySet<OpenConnection>) => OpenConnection
  /** With a place, but unknown. */
  readonly #unknown = new Set<OpenConnection>()
  readonly #guests = new Set<OpenConnection>()
  #isLooking = false

  constructor(server: Server, connections: Connections, maxConnections: number, clock: Clock) {
    this.#server = server
    this.#clock = clock
    this.#leastOf = (held) => leastOf(held, connections, clock.monotonic())
    this.#shares = new HostShares<OpenConnection>(maxConnections, {
      hasLeft: ({ socket }) => socket.readableEnded,
      leastOf: this.#leastOf
    })
  }

  receive(socket: Socket): void {
    const { remoteAddress: host } = socket
    // it has left already
    if (host === undefined) return void socket.destroy()
    const isHere = isLocal(socket)
    const held = { socket, host, end: isHere ? clientEnd(socket) : '', sinceMs: this.#clock.monotonic() }
    socket.once('close', () => {
      for (const each of [this.#shares, this.#unknown, this.#guests]) each.delete(held)
    })
    if (!isHere) this.#place(held)
    else if (TELLS_USERS && this.#shares.size >= this.#shares.limit) this.#admit(held)
    else this.#place(held, LOCAL)
  }

  #place(held: OpenConnection, user?: string): void {
    const going = this.#shares.add(held.host, held, user)
    if (going !== undefined) this.#drop(going)
    if (user === LOCAL && going !== held) this.#unknown.add(held)
  }

  /** As a guest. */
  #admit(held: OpenConnection): void {
    if (this.#guests.size >= MAX_GUESTS) {
      const going = this.#leastOf(this.#guests)
      this.#guests.delete(going)
      this.#drop(going)
    }
    this.#guests.add(held)
    void this.#look()
  }

  /** Finds out who the guests are. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#guests.size > 0) {
      const asked = [...this.#unknown, ...this.#guests]
      const users = await usersOf(
        asked.map(({ end }) => end),
        this.#clock
      )
      // first those with a place, with whom the guests are compared
      for (const held of asked) {
        const user = users.get(held.end)
        if (this.#guests.delete(held)) this.#place(held, user ?? LOCAL)
        else if (user !== undefined && this.#unknown.delete(held)) this.#shares.assign(held, user)
      }
    }
    this.#isLooking = false
  }

  #drop({ socket }: OpenConnection): void {
    // leaves nothing behind, which closing does for a minute
    socket.resetAndDestroy()
    this.#server.emit('drop')
  }
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
