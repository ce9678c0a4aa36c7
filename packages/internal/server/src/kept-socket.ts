import type { Server as HttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import type { Clock, Timer } from '@svc/internal-clock'
import { type ClaimedSocket, claimSocket, type SocketPlace } from './private-socket.ts'

const SOCKET_CHECK_MS = 30_000

export interface KeepOptions {
  readonly clock: Clock
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>
  /** Called after the socket was bound again. */
  readonly onRebound?: () => void
}

/**
 * Checks periodically whether the socket file still exists, and binds the path again if it is gone: some systems clean
 * up temporary folders. Another program's file is left alone, and reported once. The first listener keeps its
 * connections; each new one passes its own to the same HTTP server.
 */
export class KeptSocket {
  readonly path: string
  readonly #server: HttpServer
  readonly #place: SocketPlace
  readonly #options: KeepOptions
  readonly #timer: Timer
  readonly #acceptors: Server[] = []
  #claimed: ClaimedSocket
  #checking: Promise<void> | undefined
  #complained = false
  #released = false
  #closed: Promise<unknown> = Promise.resolve()

  constructor(server: HttpServer, claimed: ClaimedSocket, place: SocketPlace, options: KeepOptions) {
    this.path = claimed.path
    this.#server = server
    this.#claimed = claimed
    this.#place = place
    this.#options = options
    this.#timer = options.clock.every(SOCKET_CHECK_MS, () => this.#start())
  }

  /** Stops the checks, removes the file if it is ours, and stops accepting on the additional listeners. Idempotent. */
  async release(): Promise<void> {
    this.#released = true
    this.#timer.cancel()
    await this.#checking
    await this.#claimed.release()
    this.#closed = Promise.all(
      this.#acceptors.map((acceptor) => new Promise<void>((resolve) => void acceptor.close(() => resolve())))
    )
  }

  /** After a release: resolves when the connections of the additional listeners have ended. */
  get closed(): Promise<unknown> {
    return this.#closed
  }

  #start(): void {
    this.#checking ??= this.#check()
      .catch((error: unknown) =>
        this.#options.log.error({ err: error, path: this.path }, 'the socket cannot be bound again')
      )
      .finally(() => (this.#checking = undefined))
  }

  async #check(): Promise<void> {
    const { log, onRebound } = this.#options
    const presence = await this.#claimed.look()
    if (presence === 'taken' && !this.#complained) {
      this.#complained = true
      log.error(
        { path: this.path },
        'something else is at the path of the socket; it is left alone, and no client can reach this program'
      )
    }
    if (presence !== 'gone' || this.#released) return
    const acceptor = createServer({ allowHalfOpen: true }, (socket) => void this.#server.emit('connection', socket))
    acceptor.maxConnections = this.#server.maxConnections
    this.#claimed = await claimSocket(acceptor, this.#place)
    this.#acceptors.push(acceptor)
    this.#complained = false
    log.warn({ path: this.path }, "the socket's file was missing; the socket is bound again")
    onRebound?.()
  }
}
