import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import { type Refusal, refuseRaw } from './raw-refusal.ts'

/** Limit of requests waiting on all connections of a listener together: a few KB each. */
const MAX_WAITING_REQUESTS = 8_192
/** This many may wait on one connection even if the listener's limit is reached. */
const FAIR_WAITING_REQUESTS = 8
interface PendingExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly begin: () => void
}

/**
 * Makes a response the last one of its connection: Node says `Connection: close`, and what was pipelined behind it is
 * dropped. A header of that name alone would not be seen by {@link Connection}.
 */
export function endConnectionWith(response: ServerResponse): void {
  response.shouldKeepAlive = false
}

export class Connections {
  readonly #bySocket = new WeakMap<Duplex, Connection>()
  readonly clock: Clock
  /** Requests that wait, on all connections. */
  waiting = 0

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Whether the connection has no unanswered request. */
  isIdle(socket: Duplex): boolean {
    return this.#bySocket.get(socket)?.isIdle ?? true
  }

  of(socket: Duplex): Connection {
    let connection = this.#bySocket.get(socket)
    if (connection === undefined) this.#bySocket.set(socket, (connection = new Connection(socket, this)))
    return connection
  }
}

/**
 * One connection: its requests are answered one at a time, in order (RFC 9112 §9.3.2). Node emits pipelined requests at
 * once, and hundreds of blob responses would hold descriptors and buffers. Here a request starts when the previous
 * response has ended, and while one waits the socket is not read: at most one read's worth, 64 KiB, of requests waits.
 * A refusal without a request (bytes that are not HTTP, CONNECT) waits for its turn like a response, and is the last
 * one. Invariants: requests wait only behind `#active`; after `#last` nothing more is accepted; after a response with
 * `Connection: close` no request is begun and no refusal written (RFC 9112 §9.6).
 */
export class Connection {
  readonly #socket: Duplex
  readonly #all: Connections
  readonly #waiting: PendingExchange[] = []
  #active: PendingExchange | undefined
  /** The next of `#waiting` starts in a later turn of the event loop. */
  #isDue = false
  #last: Refusal | undefined
  /** A response with `Connection: close` was sent. */
  #isOver = false
  /** Ends a request that timed out while the connection was not read, unless its rest arrives soon after that. */
  #late: { readonly refusal: Refusal; readonly graceMs: number; timer?: Timer } | undefined

  constructor(socket: Duplex, all: Connections) {
    this.#socket = socket
    this.#all = all
    socket.once('close', () => this.#drop())
  }

  get isIdle(): boolean {
    return this.#active === undefined && this.#waiting.length === 0
  }

  /** Starts the exchange when its turn comes; never, if the connection is gone by then. */
  accept(exchange: PendingExchange): void {
    if (this.#last !== undefined || this.#isOver || this.#socket.destroyed) return
    this.#notLate()
    if (this.#active === undefined && !this.#isDue) return this.#begin(exchange)
    if (this.#all.waiting >= MAX_WAITING_REQUESTS && this.#waiting.length >= FAIR_WAITING_REQUESTS) {
      this.#socket.destroy()
      return
    }
    this.#waiting.push(exchange)
    this.#all.waiting++
    this.#pauseSoon()
  }

  /** Closes the connection with a refusal, after the responses to complete requests. Only the first refusal counts. */
  refuse(refusal: Refusal): void {
    if (this.#last !== undefined || this.#isOver) return
    this.#last = refusal
    // a request with a broken or late body gets the refusal as its response
    const newest = this.#waiting.at(-1)
    if (newest !== undefined && !newest.request.complete) this.#take(this.#waiting.length - 1)
    const active = this.#active
    if (this.#isDue) return
    if (active === undefined) return refuseRaw(this.#socket, refusal, this.#all.clock)
    if (active.request.complete) return
    // in the middle of a response another status line would be read as part of its body
    if (active.response.headersSent) this.#socket.destroy()
    else refuseRaw(this.#socket, refusal, this.#all.clock)
  }

  /**
   * A request did not arrive in time. If a response was being sent, or requests were waiting, the connection was not
   * read: the request then gets another `graceMs` after that. Node checks the same request only once.
   */
  refuseLate(refusal: Refusal, graceMs: number): void {
    const newest = this.#waiting.at(-1) ?? this.#active
    if (newest === undefined || !newest.request.complete) return this.refuse(refusal)
    this.#late = { refusal, graceMs }
  }

  #begin(exchange: PendingExchange): void {
    const { response, begin } = exchange
    this.#active = exchange
    // before Node's own listener, which may end the socket after this response
    response.prependOnceListener('finish', () => this.#onFinish(response))
    response.once('close', () => this.#onClose(exchange))
    begin()
  }

  #onFinish(response: ServerResponse): void {
    if (!response.shouldKeepAlive) {
      this.#isOver = true
      return this.#drop()
    }
    if (this.#last !== undefined && this.#waiting.length === 0) refuseRaw(this.#socket, this.#last, this.#all.clock)
  }

  #onClose(exchange: PendingExchange): void {
    if (this.#active !== exchange) return
    this.#active = undefined
    // without a socket this response would never finish
    if (this.#socket.destroyed) return this.#drop()
    if (this.#waiting.length === 0) return this.#readOn(undefined)
    this.#isDue = true
    loopBudget.later('pipelined', () => {
      this.#isDue = false
      if (this.#socket.destroyed) return this.#drop()
      const next = this.#take(0)
      if (next !== undefined) this.#begin(next)
      // the refusal withdrew the incomplete request that was due
      else if (this.#last !== undefined) return refuseRaw(this.#socket, this.#last, this.#all.clock)
      if (this.#waiting.length > 0) this.#pauseSoon()
      else this.#readOn(next)
    })
  }

  /** No request waits any more: reads the connection again, unless it accepts no more. */
  #readOn(active: PendingExchange | undefined): void {
    if (this.#last !== undefined || this.#isOver) return
    this.#socket.resume()
    const late = this.#late
    if (late !== undefined && active === undefined)
      late.timer ??= this.#all.clock.after(late.graceMs, () => this.refuse(late.refusal))
  }

  #take(index: number): PendingExchange | undefined {
    const [exchange] = this.#waiting.splice(index, 1)
    if (exchange !== undefined) this.#all.waiting--
    return exchange
  }

  /** Node resumes the socket at the end of each message that it parses, so pause after the current one. */
  #pauseSoon(): void {
    process.nextTick(() => {
      if (this.#waiting.length > 0 && !this.#socket.destroyed) this.#socket.pause()
    })
  }

  #notLate(): void {
    this.#late?.timer?.cancel()
    this.#late = undefined
  }

  #drop(): void {
    this.#notLate()
    this.#all.waiting -= this.#waiting.length
    this.#waiting.length = 0
  }
}
