import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Refusal, refuseRaw } from './raw-refusal.ts'

/** Requests that wait for their turn on all connections of a listener together: a few KB each. */
const MAX_WAITING_REQUESTS = 8_192
/** This many may wait on one connection even when the listener's total is used up. */
const FAIR_WAITING_REQUESTS = 8

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly begin: () => void
}

/** The connections of one listener, and what they may hold together. */
export class Connections {
  readonly #bySocket = new WeakMap<Duplex, Connection>()
  waiting = 0

  of(socket: Duplex): Connection {
    let connection = this.#bySocket.get(socket)
    if (connection === undefined) this.#bySocket.set(socket, (connection = new Connection(socket, this)))
    return connection
  }
}

/**
 * One connection: its requests are answered one at a time, in the order in which they came (RFC 9112 §9.3.2).
 *
 * Node parses what a client pipelines as soon as it has arrived, and announces each request at once: hundreds of blob responses
 * would hold their descriptors and buffers while the first one is being sent. Here a request begins when the response before it is
 * over, and while one waits the socket is not read: what a client can have waiting is what one read brings, 64 KiB. A refusal
 * without a request (bytes that are no HTTP, CONNECT) takes its turn like an answer, and is the last one.
 *
 * Invariants: something waits only behind `#active`; after `#last` is set nothing is accepted any more.
 */
export class Connection {
  readonly #socket: Duplex
  readonly #all: Connections
  readonly #waiting: Exchange[] = []
  #active: Exchange | undefined
  #last: Refusal | undefined
  /** Ends a request that was late while it could not be read, should its rest not come once it can be. */
  #late: { readonly refusal: Refusal; readonly graceMs: number; timer?: NodeJS.Timeout } | undefined

  constructor(socket: Duplex, all: Connections) {
    this.#socket = socket
    this.#all = all
    socket.once('close', () => this.#drop())
  }

  /** Begins the exchange when its turn comes; never, when the connection is gone by then. */
  accept(exchange: Exchange): void {
    if (this.#last !== undefined || this.#socket.destroyed) return
    this.#notLate()
    if (this.#active === undefined) return this.#begin(exchange)
    if (this.#all.waiting >= MAX_WAITING_REQUESTS && this.#waiting.length >= FAIR_WAITING_REQUESTS) {
      this.#socket.destroy()
      return
    }
    this.#waiting.push(exchange)
    this.#all.waiting++
    this.#pauseSoon()
  }

  /** Ends the connection with a refusal, after the answers to all complete requests. The first refusal counts. */
  refuse(refusal: Refusal): void {
    if (this.#last !== undefined) return
    this.#last = refusal
    // a request whose body is broken or late gets the refusal for its answer
    const newest = this.#waiting.at(-1)
    if (newest !== undefined && !newest.request.complete) this.#take(this.#waiting.length - 1)
    const active = this.#active
    if (active === undefined) return refuseRaw(this.#socket, refusal)
    if (active.request.complete) return
    // in the middle of a response another status line would be read as its body
    if (active.response.headersSent) this.#socket.destroy()
    else refuseRaw(this.#socket, refusal)
  }

  /**
   * A request did not arrive in time. Where an answer is being sent, or requests wait, nobody read it: it gets `graceMs` anew when
   * that is over. Node looks at the same request only once.
   */
  refuseLate(refusal: Refusal, graceMs: number): void {
    const newest = this.#waiting.at(-1) ?? this.#active
    if (newest === undefined || !newest.request.complete) return this.refuse(refusal)
    this.#late = { refusal, graceMs }
  }

  #begin(exchange: Exchange): void {
    const { response, begin } = exchange
    this.#active = exchange
    // before Node's own listener, which may end the socket behind this answer
    response.prependOnceListener('finish', () => this.#onFinish(response))
    response.once('close', () => this.#onClose(exchange))
    begin()
  }

  #onFinish(response: ServerResponse): void {
    if (this.#last === undefined || this.#waiting.length > 0) return
    // a client that announced its last request gets no answer to what follows it
    if (response.shouldKeepAlive) refuseRaw(this.#socket, this.#last)
  }

  #onClose(exchange: Exchange): void {
    if (this.#active !== exchange) return
    this.#active = undefined
    // without a socket this response would never finish
    if (this.#socket.destroyed) return this.#drop()
    const next = this.#take(0)
    if (next !== undefined) this.#begin(next)
    if (this.#waiting.length > 0) this.#pauseSoon()
    else if (this.#last === undefined) {
      this.#socket.resume()
      const late = this.#late
      if (late !== undefined && next === undefined)
        late.timer ??= setTimeout(() => this.refuse(late.refusal), late.graceMs)
    }
  }

  #take(index: number): Exchange | undefined {
    const [exchange] = this.#waiting.splice(index, 1)
    if (exchange !== undefined) this.#all.waiting--
    return exchange
  }

  /** Node resumes the socket at the end of each message that it parses, so the pause comes after what is being parsed now. */
  #pauseSoon(): void {
    process.nextTick(() => {
      if (this.#waiting.length > 0 && !this.#socket.destroyed) this.#socket.pause()
    })
  }

  #notLate(): void {
    clearTimeout(this.#late?.timer)
    this.#late = undefined
  }

  #drop(): void {
    this.#notLate()
    this.#all.waiting -= this.#waiting.length
    this.#waiting.length = 0
  }
}
