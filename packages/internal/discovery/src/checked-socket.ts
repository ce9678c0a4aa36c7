import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { EventEmitter } from 'node:events'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { isPort, PerSecond } from '@svc/internal-net'
import { fitAnswer } from './krpc.ts'

/** Datagrams per second (docs/budgets.md). */
export interface DatagramLimits {
  /** From one address; further ones are dropped. Default 50. */
  readonly perAddress: number
  /** In total from all nodes that we have not queried; further ones are dropped. Default 500. */
  readonly total: number
  /** Our own queries to one node; further ones wait. Default 20. */
  readonly ownPerNode: number
  /** Our own queries in total; further ones wait. Default 200. */
  readonly own: number
}

const LIMITS: DatagramLimits = { perAddress: 50, total: 500, ownPerNode: 20, own: 200 }
/** Limit of waiting queries. The library gives up on a query after two seconds. */
const MAX_WAITING = 1_000
const FLUSH_MS = 100
/** Nodes that we queried are exempt from the limit for this long, up to twice that. */
const ASKED_MS = 4_000
/** Bencoded keys are sorted, so the kind of a message comes last. */
const QUERY_END = Buffer.from('1:y1:qe')

/** An answer goes to whatever address its query names as the sender: it must not be worth forging one (spec swarm.19). */
const MAX_AMPLIFICATION = 3

type SendCallback = (error: Error | null) => void

interface QueuedDatagram {
  readonly bytes: Buffer
  readonly port: number
  readonly host: string
  readonly done: SendCallback
}

/**
 * A UDP socket with the interface that the DHT library uses. The library sees only datagrams that `check` accepts, as
 * `check` returns them, only from senders that can be answered, and only a limited number per second. Sending to an
 * impossible port fails through the callback rather than by throwing. Our own queries are rate-limited; excess ones
 * wait. A flood, even from forged addresses, does not displace answers to our queries. An answer is shorter than three
 * times its query, so over any time an address gets less than three times what was sent in its name.
 */
export class CheckedSocket extends EventEmitter {
  readonly #socket: Socket
  readonly #strangers: PerSecond
  readonly #known: PerSecond
  readonly #own: PerSecond
  /** The nodes queried in this period, and in the one before. */
  #asked: [Set<string>, Set<string>] = [new Set(), new Set()]
  #period = 0
  #waiting: QueuedDatagram[] = []
  readonly #clock: Clock
  #timer: Timer | undefined
  #refused = 0
  /** The length of the query that the library is answering: it does so before it returns. */
  #queryBytes = 0

  constructor(
    check: (datagram: Uint8Array) => Uint8Array | undefined,
    limits: Partial<DatagramLimits> = {},
    clock: Clock = systemClock
  ) {
    super()
    this.#clock = clock
    const { perAddress, total, ownPerNode, own } = { ...LIMITS, ...limits }
    this.#strangers = new PerSecond({ total, each: perAddress })
    this.#known = new PerSecond({ total: Number.POSITIVE_INFINITY, each: perAddress })
    this.#own = new PerSecond({ total: own, each: ownPerNode })
    this.#socket = createSocket('udp4')
    this.#socket.on('message', (datagram, sender: RemoteInfo) => {
      const checked = isPort(sender.port) ? check(datagram) : undefined
      if (checked === undefined || !this.#mayCome(sender)) this.#refused += 1
      else {
        this.#queryBytes = datagram.length
        this.emit('message', Buffer.from(checked.buffer, checked.byteOffset, checked.byteLength), sender)
        this.#queryBytes = 0
      }
    })
    for (const event of ['error', 'listening', 'close'] as const) {
      this.#socket.on(event, (...rest: readonly unknown[]) => this.emit(event, ...rest))
    }
  }

  get refused(): number {
    return this.#refused
  }

  bind(port: number, host: string, listening?: () => void): void {
    this.#socket.bind(port, host, listening)
  }

  address(): ReturnType<Socket['address']> {
    return this.#socket.address()
  }

  send(bytes: Uint8Array, offset: number, length: number, port: number, host: string, done: SendCallback): void {
    if (!isPort(port)) return queueMicrotask(() => done(new RangeError(`port ${port} is invalid`)))
    const datagram = Buffer.from(bytes.buffer, bytes.byteOffset + offset, length)
    if (!datagram.subarray(-QUERY_END.length).equals(QUERY_END)) return this.#answer(datagram, port, host, done)
    if (this.#mayAsk(host, port)) return this.#socket.send(datagram, port, host, done)
    if (this.#waiting.length >= MAX_WAITING)
      return queueMicrotask(() => done(new Error('too many queries are waiting')))
    this.#waiting.push({ bytes: datagram, port, host, done })
    this.#timer ??= this.#clock.every(FLUSH_MS, () => this.#flush())
  }

  close(): void {
    this.#timer?.cancel()
    this.#waiting = []
    this.#socket.close()
  }

  #answer(answer: Buffer, port: number, host: string, done: SendCallback): void {
    const fitting = fitAnswer(answer, MAX_AMPLIFICATION * this.#queryBytes)
    if (fitting === undefined) queueMicrotask(() => done(new Error('the answer would be too long for its query')))
    else this.#socket.send(fitting, port, host, done)
  }

  #mayCome({ address, port }: RemoteInfo): boolean {
    const node = `${address}:${port}`
    const budget = this.#askedLately().some((asked) => asked.has(node)) ? this.#known : this.#strangers
    return budget.take(address, this.#clock.monotonic())
  }

  #mayAsk(host: string, port: number): boolean {
    const node = `${host}:${port}`
    if (!this.#own.take(node, this.#clock.monotonic())) return false
    this.#askedLately()[0].add(node)
    return true
  }

  #askedLately(): [Set<string>, Set<string>] {
    const period = Math.floor(this.#clock.monotonic() / ASKED_MS)
    if (period !== this.#period) this.#asked = [new Set(), period === this.#period + 1 ? this.#asked[0] : new Set()]
    this.#period = period
    return this.#asked
  }

  #flush(): void {
    this.#waiting = this.#waiting.filter(({ bytes, port, host, done }) => {
      if (!this.#mayAsk(host, port)) return true
      this.#socket.send(bytes, port, host, done)
      return false
    })
    if (this.#waiting.length > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
