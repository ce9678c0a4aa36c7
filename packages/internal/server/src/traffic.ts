import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The traffic of one listener since the start. */
export interface TrafficFigures {
  /** `api`, `webseed`, `hub`, `oci`, `s3`, `metrics`. */
  readonly listener: string
  /** Completed responses, by the first digit of their status. */
  readonly answers: ReadonlyMap<string, number>
  /** Bytes sent, including heads. */
  readonly sentBytes: number
  readonly connections: number
  readonly maxConnections: number
  /** Connections that were refused, or closed for those of another host, because the limit was reached. */
  readonly refused: number
}

/** What a listener tells, and asks, about its requests. */
export interface TrafficCounter {
  /** Whether the program reached itself while it looked for other sources. */
  isOfItself(request: IncomingMessage): boolean
  /** Starts counting. A listener has one server. */
  watch(server: Server, maxConnections: number): void
}

/** Counts the traffic of a listener, at the cost of one event per response. */
export class Traffic implements TrafficCounter {
  readonly #listener: string
  readonly #mark: string | undefined
  readonly #answers = new Map(['2', '4', '5'].map((digit) => [digit, 0]))
  readonly #sockets = new Set<Socket>()
  #maxConnections = 0
  #closedBytes = 0
  #refused = 0

  constructor(listener: string, mark?: string) {
    this.#listener = listener
    this.#mark = mark
  }

  isOfItself({ headers }: IncomingMessage): boolean {
    return this.#mark !== undefined && headers['user-agent']?.includes(this.#mark) === true
  }

  watch(server: Server, maxConnections: number): void {
    this.#maxConnections = maxConnections
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => {
        this.#sockets.delete(socket)
        this.#closedBytes += socket.bytesWritten
      })
    })
    server.on('drop', () => this.#refused++)
    server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
      response.once('close', () => {
        const first = `${response.statusCode}`[0]!
        this.#answers.set(first, (this.#answers.get(first) ?? 0) + 1)
      })
    })
  }

  figures(): TrafficFigures {
    let sentBytes = this.#closedBytes
    for (const { bytesWritten } of this.#sockets) sentBytes += bytesWritten
    return {
      listener: this.#listener,
      answers: new Map(this.#answers),
      sentBytes,
      connections: this.#sockets.size,
      maxConnections: this.#maxConnections,
      refused: this.#refused
    }
  }
}

/** The listeners of a program: for its metrics, and to recognize its own mirrors. */
export class Listeners {
  /** In the user agent of requests that none of them may answer; new at each start, so that it identifies no machine. */
  readonly mark = randomBytes(8).toString('hex')
  readonly #all: Traffic[] = []

  add(listener: string): Traffic {
    const traffic = new Traffic(listener, this.mark)
    this.#all.push(traffic)
    return traffic
  }

  figures(): TrafficFigures[] {
    return this.#all.map((traffic) => traffic.figures())
  }
}
