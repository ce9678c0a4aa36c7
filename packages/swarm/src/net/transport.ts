import type { Socket } from 'node:net'
import type { Clock } from '@svc/internal-clock'
import { loopBudget } from '@svc/internal-concurrency'
import type { Rc4 } from '../wire/rc4.ts'
import { guarded, reportDefect } from './guarded.ts'

/** The time is checked after this many bytes: some thousand of the smallest messages. */
export const SLICE_BYTES = 16_384

/** The reader of a transport. Data views are valid during the call only. */
export interface TransportSink {
  /** `nowMs`: the time, so that the reader need not ask the clock again. */
  data(bytes: Uint8Array, nowMs: number): void
  /** Called once, however the connection ended. */
  closed(error: Error | undefined): void
}

/**
 * A TCP connection as peers use it: messages of one turn of the event loop are sent with one writev; optional RC4 in
 * both directions. Bytes beyond the time of a turn wait, and the socket is not read meanwhile.
 *
 * Invariants: after `closed` nothing is delivered and nothing is sent; while bytes are held the socket is paused.
 */
export class Transport {
  readonly socket: Socket
  readonly #clock: Clock
  #sink: TransportSink = { data: () => undefined, closed: () => undefined }
  #encrypt: Rc4 | undefined
  #decrypt: Rc4 | undefined
  /** Bytes as they were read, for a later turn. */
  #held: Uint8Array[] = []
  #out: Uint8Array[] = []
  #scheduled = false
  #ended = false
  #closed = false
  #error: Error | undefined

  constructor(socket: Socket, clock: Clock) {
    this.socket = socket
    this.#clock = clock
    socket.setNoDelay(true)
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('end', () => socket.destroy())
    socket.on(
      'close',
      guarded(() => {
        this.#ended = true
        // bytes that came before the end are still read.
        if (this.#held.length === 0 || this.#error !== undefined) this.#over()
      })
    )
  }

  /** Hands the stream to a reader: first the handshake, then the peer. */
  setSink(sink: TransportSink): void {
    this.#sink = sink
  }

  setCiphers(encrypt: Rc4 | undefined, decrypt: Rc4 | undefined): void {
    this.flush()
    this.#encrypt = encrypt
    this.#decrypt = decrypt
  }

  get encrypted(): boolean {
    return this.#encrypt !== undefined
  }

  /** Bytes that the kernel has not yet taken. */
  get bufferedBytes(): number {
    return this.socket.writableLength
  }

  /** Called with bytes that were read from the socket (data event or onread callback); may decrypt them in place. */
  receive(bytes: Uint8Array): void {
    if (this.#closed) return
    let at = 0
    while (at < bytes.length && this.#held.length === 0 && !loopBudget.isOver('peer-messages')) {
      const slice = bytes.subarray(at, at + SLICE_BYTES)
      at += slice.length
      this.#deliver(slice)
      if (this.#closed) return
    }
    if (at >= bytes.length) return
    // a copy: the socket's buffer is used again.
    this.#held.push(new Uint8Array(bytes.subarray(at)))
    this.socket.pause()
    loopBudget.later('peer-messages', this.#readHeld)
  }

  /** One slice of what is held, in a later turn. */
  readonly #readHeld = (): void => {
    const first = this.#held[0]
    if (this.#closed || first === undefined) return
    if (first.length > SLICE_BYTES) this.#held[0] = first.subarray(SLICE_BYTES)
    else this.#held.shift()
    this.#deliver(first.subarray(0, SLICE_BYTES))
    if (this.#held.length > 0) loopBudget.later('peer-messages', this.#readHeld)
    else if (this.#ended) this.#over()
    else if (!this.#closed) this.socket.resume()
  }

  #deliver(bytes: Uint8Array): void {
    try {
      this.#sink.data(this.#decrypt === undefined ? bytes : this.#decrypt.apply(bytes), this.#clock.monotonic())
    } catch (error) {
      reportDefect(error)
      this.close()
    }
  }

  #over(): void {
    if (this.#closed) return
    this.#end()
    this.#sink.closed(this.#error)
  }

  #end(): void {
    this.#closed = true
    this.#held = []
    loopBudget.leave(this.#readHeld)
  }

  /** Queues bytes, to be sent together with everything else of this turn. */
  send(bytes: Uint8Array): void {
    if (this.#closed) return
    this.#out.push(bytes)
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.flush()
    })
  }

  /**
   * Sends everything queued and then `bytes`, which may be encrypted in place. True: the kernel has taken all of it, or
   * the socket is gone, and the memory may be used again. False: `done` is called once, when that is so.
   */
  sendNow(bytes: Uint8Array, done: () => void): boolean {
    if (this.#closed) return true
    this.flush()
    let pending = false
    this.socket.write(
      this.#encrypt === undefined ? bytes : this.#encrypt.apply(bytes),
      guarded(() => {
        if (pending) done()
      })
    )
    // the callback would say so later, when the memory has left the CPU's cache.
    pending = this.socket.writableLength > 0
    return !pending
  }

  flush(): void {
    if (this.#out.length === 0 || this.#closed) return
    const out = this.#out
    this.#out = []
    const bytes = out.length === 1 && this.#encrypt === undefined ? out[0]! : Buffer.concat(out)
    // `new Uint8Array(view)` copies: the same message may go to other peers.
    this.socket.write(this.#encrypt === undefined ? bytes : this.#encrypt.apply(new Uint8Array(bytes)))
  }

  /** Closes at once; queued messages are still sent if the socket takes them. */
  close(): void {
    if (this.#closed) return
    this.flush()
    this.#end()
    this.socket.destroy()
    this.#sink.closed(undefined)
  }
}
