import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { leastBytesIn } from '@svc/internal-http'
import { type DownloadLimit, TURN_BYTES } from '@svc/internal-net'
import { type BlockWriter, diskMs } from './block-writer.ts'
import { MAX_HEAD_BYTES, type PlainHead, readPlainHead } from './plain-head.ts'

export interface Destination {
  readonly secure: boolean
  readonly host: string
  readonly port: number
  /** A literal address is connected to without it. */
  readonly lookup: LookupFunction
  readonly connectMs: number
  /** Absent: what comes is not limited. */
  readonly downloads?: DownloadLimit | undefined
}

export interface RangeExchange {
  readonly request: string
  readonly start: number
  readonly end: number
  readonly sizeBytes: number
  /** Longest time without a byte of the body, or until the head has arrived. */
  readonly stallMs: number
  /** In each span of this length the body must bring {@link leastBytesIn} it; time that the disk or the limit took is left out. */
  readonly slowMs: number
  readonly onHead: (head: PlainHead) => BlockWriter
}

/** `status`, `form`: a response that is not read here (see `readPlainHead`); the connection is closed. */
export type RangeOutcome = 'done' | 'status' | 'form'

class ConnectionError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

interface Current extends RangeExchange {
  readonly resolve: (outcome: RangeOutcome) => void
  readonly reject: (error: unknown) => void
  writer: BlockWriter | undefined
  keepsAlive: boolean
}

/** Shorter than most servers' idle time-out; a connection that the server has closed costs a second attempt. */
const IDLE_MS = 4_000

/**
 * A connection that requests ranges, one at a time, and reads their bodies directly into the blocks that are
 * written (decision 0062).
 *
 * Invariants: at most one exchange runs at a time; bytes outside an exchange close the connection; nothing is written
 * after an end.
 */
export class RangeConnection {
  readonly #socket: Socket
  readonly #head = Buffer.allocUnsafeSlow(MAX_HEAD_BYTES)
  readonly #onGone: () => void
  readonly #clock: Clock
  readonly #downloads: DownloadLimit | undefined
  #headFilled = 0
  #current: Current | undefined
  #gone = false
  #answered = 0
  #stall: Timer | undefined
  #heard = false
  #slow: Timer | undefined
  #arrived = 0
  /** How long the limit of downloads has held it up. */
  #heldMs = 0
  #held: Timer | undefined

  constructor(to: Destination, onGone: () => void, clock = systemClock) {
    this.#clock = clock
    this.#onGone = onGone
    const { secure, host, port, lookup, connectMs, downloads } = to
    this.#downloads = downloads
    const options = {
      host,
      port,
      noDelay: true,
      lookup,
      onread: { buffer: () => this.#room(), callback: (count: number) => this.#read(count) }
    }
    this.#socket = secure
      ? connectTls({
          ...options,
          ALPNProtocols: ['http/1.1'],
          ...(isIP(host) === 0 && { servername: host })
        })
      : connectPlain(options)
    this.#socket.setTimeout(connectMs, () => this.#fail(new ConnectionError('ETIMEDOUT', 'no connection in time')))
    this.#socket.once(secure ? 'secureConnect' : 'connect', () => this.#socket.setTimeout(0))
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('end', () => this.#fail(new ConnectionError('ECONNRESET', 'the other side ended the connection')))
    this.#socket.on('close', () => this.#fail(new ConnectionError('ECONNRESET', 'the connection was closed')))
  }

  get isGone(): boolean {
    return this.#gone
  }

  /** It was used before: the server may have closed it unnoticed. */
  get wasUsed(): boolean {
    return this.#answered > 0
  }

  /**
   * Resolves after the last byte was written. If it rejects, the bytes that had arrived are written nevertheless.
   * @throws WriteFailure; errors of the network, with their codes
   */
  run(exchange: RangeExchange): Promise<RangeOutcome> {
    return new Promise((resolve, reject) => {
      if (this.#gone || this.#current !== undefined) throw new Error('the connection is gone or busy')
      this.#current = { ...exchange, resolve, reject, writer: undefined, keepsAlive: false }
      this.#headFilled = 0
      this.#heard = false
      this.#watch(exchange.stallMs)
      this.#socket.write(exchange.request, 'latin1')
    })
  }

  destroy(reason: Error = new ConnectionError('ECONNABORTED', 'the connection is not needed any more')): void {
    this.#fail(reason)
  }

  /**
   * Where to put bytes: never empty, so that unexpected bytes are noticed, even after the connection was closed. TLS
   * still delivers the rest of a decrypted record then; without room for it, it would retry for ever, in native code that
   * nothing can stop.
   */
  #room(): Uint8Array {
    if (this.#gone) return this.#head
    const writer = this.#current?.writer
    if (writer === undefined) return this.#head.subarray(this.#headFilled)
    const room = writer.room()
    return this.#downloads?.limited === true ? room.subarray(0, TURN_BYTES) : room
  }

  #read(count: number): boolean {
    if (this.#gone) return false
    const current = this.#current
    this.#arrived += count
    // a head is short: it has to arrive completely within the time limit, not byte by byte.
    this.#heard = current?.writer !== undefined
    try {
      if (current === undefined) throw new ConnectionError('HPE_UNEXPECTED', 'unrequested bytes')
      if (current.writer === undefined) this.#readHead(current, count)
      else current.writer.took(count)
      if (current.writer?.leftBytes === 0) this.#complete(current)
    } catch (error) {
      this.#fail(error)
    }
    this.#pay(count)
    return !this.#gone
  }

  /** Reads no further until the limit of downloads allows it. */
  #pay(bytes: number): void {
    const turn = this.#downloads?.take(bytes) ?? 0
    const waitMs = this.#downloads?.waitMs(turn) ?? 0
    if (waitMs > 0 && !this.#gone) this.#hold(turn, waitMs)
  }

  #hold(turn: number, waitMs: number): void {
    this.#socket.pause()
    this.#held = this.#clock.after(waitMs, () => {
      this.#heldMs += waitMs
      this.#heard = true
      const leftMs = this.#downloads!.waitMs(turn)
      if (leftMs > 0) return this.#hold(turn, leftMs)
      this.#socket.resume()
    })
  }

  #readHead(current: Current, count: number): void {
    this.#headFilled += count
    const bytes = this.#head.subarray(0, this.#headFilled)
    const head = readPlainHead(bytes, current)
    if (head === 'more') return
    if (typeof head === 'string') {
      this.#settle()
      current.resolve(head)
      this.#fail(new ConnectionError('ECONNABORTED', 'not read here'))
      return
    }
    current.keepsAlive = head.keepsAlive
    current.writer = current.onHead(head)
    this.#heard = true
    this.#watchPace(current.slowMs)
    const rest = bytes.subarray(head.headBytes)
    if (rest.length > current.writer.leftBytes)
      throw new ConnectionError('HPE_UNEXPECTED', 'the body is longer than its header says')
    current.writer.take(rest)
  }

  #complete(current: Current): void {
    const { writer } = current
    current.writer = undefined
    writer!.end()
    this.#answered += 1
    this.#headFilled = 0
    this.#settle()
    current.resolve('done')
    if (current.keepsAlive) this.#watch(IDLE_MS)
    else this.#fail(new ConnectionError('ECONNABORTED', 'done'))
  }

  /** One timer that checks whether bytes have arrived. After a wait for the disk, pending bytes are read first. */
  #watch(afterMs: number): void {
    this.#stall?.cancel()
    this.#stall = this.#clock.after(afterMs, () => {
      setImmediate(() => {
        if (this.#gone) return
        if (this.#heard && this.#current !== undefined) {
          this.#heard = false
          this.#watch(afterMs)
        } else this.#fail(new ConnectionError('ERR_STALLED', `no byte for ${afterMs / 1000} s`))
      })
    })
  }

  /** After a wait for the disk, pending bytes are read first, as in {@link #watch}. */
  #watchPace(slowMs: number): void {
    this.#arrived = 0
    const current = this.#current
    const writtenMs = diskMs()
    const heldMs = this.#heldMs
    this.#slow = this.#clock.after(slowMs, () => {
      setImmediate(() => {
        if (this.#gone || current === undefined || this.#current !== current) return
        const spanMs = slowMs - (diskMs() - writtenMs) - (this.#heldMs - heldMs)
        if (this.#arrived >= leastBytesIn(spanMs)) this.#watchPace(slowMs)
        else this.#fail(new ConnectionError('ERR_SLOW', `${this.#arrived} bytes in ${slowMs / 1000} s`))
      })
    })
  }

  #settle(): void {
    this.#stall?.cancel()
    this.#slow?.cancel()
    this.#current = undefined
  }

  #fail(error: unknown): void {
    if (this.#gone) return
    this.#gone = true
    const current = this.#current
    this.#settle()
    this.#held?.cancel()
    this.#socket.destroy()
    this.#onGone()
    if (current === undefined) return
    let reason = error
    try {
      // what arrived before the connection broke is kept: the next attempt continues after it.
      current.writer?.end()
    } catch (failure) {
      reason = failure
    }
    current.reject(reason)
  }
}
