import type { Clock, Timer } from '@svc/internal-clock'
import { SwarmError } from '../errors.ts'
import { guarded } from '../net/guarded.ts'
import type { Transport, TransportSink } from '../net/transport.ts'
import {
  formatHandshake,
  HANDSHAKE_BYTES,
  type Handshake,
  startsHandshake,
  tryParseHandshake
} from '../wire/handshake.ts'
import { MseInitiator, MseResponder } from '../wire/mse.ts'

const bad = (message: string): SwarmError => new SwarmError('E_PROTOCOL', 'handshake', message)

/** The result of a handshake. `rest`: bytes that followed it. */
export interface HandshakeEnd {
  done(handshake: Handshake, transport: Transport, rest: Uint8Array): void
  /** The connection is closed. */
  failed(error: Error | undefined): void
}

export interface HandshakeTime {
  readonly clock: Clock
  readonly timeoutMs: number
}

abstract class Handshaking implements TransportSink {
  protected readonly transport: Transport
  protected readonly end: HandshakeEnd
  protected held: Uint8Array = new Uint8Array(0)
  readonly #timer: Timer
  #over = false

  constructor(transport: Transport, end: HandshakeEnd, { clock, timeoutMs }: HandshakeTime) {
    this.transport = transport
    this.end = end
    const late = guarded(() => this.fail(bad('no handshake in time')))
    this.#timer = clock.after(timeoutMs, late)
  }

  protected abstract step(bytes: Uint8Array): void

  data(bytes: Uint8Array): void {
    if (this.#over) return
    try {
      this.step(bytes)
    } catch (error) {
      this.fail(error as Error)
    }
  }

  closed(error: Error | undefined): void {
    if (this.#over) return
    this.#over = true
    this.#timer.cancel()
    this.end.failed(error)
  }

  fail(error: Error): void {
    if (this.#over) return
    this.#over = true
    this.#timer.cancel()
    this.transport.close()
    this.end.failed(error)
  }

  /** Collects the 68 bytes. */
  protected plain(bytes: Uint8Array): void {
    this.held = this.held.length === 0 ? new Uint8Array(bytes) : Buffer.concat([this.held, bytes])
    if (!startsHandshake(this.held)) throw bad('no BitTorrent handshake')
    if (this.held.length < HANDSHAKE_BYTES) return
    const handshake = tryParseHandshake(this.held.subarray(0, HANDSHAKE_BYTES))
    if (handshake === undefined) throw bad('no BitTorrent handshake')
    this.ready(handshake)
    this.#over = true
    this.#timer.cancel()
    this.end.done(handshake, this.transport, this.held.subarray(HANDSHAKE_BYTES))
  }

  /** Checks the other side's handshake just before `done`; throws to refuse it. */
  protected abstract ready(handshake: Handshake): void
}

/** Looks up the torrent that an incoming connection asks for. */
export interface HandshakeDirectory {
  /** Our handshake for that torrent, or undefined if there is none. */
  answer(infohash: Uint8Array): Handshake | undefined
  infohashByMseKey(key: string): Uint8Array | undefined
  /** Whether one more encryption handshake may be computed now. */
  mayEncrypt(): boolean
}

/** An accepted connection: a plain handshake, or one inside an encryption handshake. */
export class IncomingHandshake extends Handshaking {
  readonly #directory: HandshakeDirectory
  #mse: MseResponder | undefined
  #plain = false

  constructor(transport: Transport, directory: HandshakeDirectory, end: HandshakeEnd, time: HandshakeTime) {
    super(transport, end, time)
    this.#directory = directory
  }

  protected step(bytes: Uint8Array): void {
    if (this.#plain) return this.plain(bytes)
    if (this.#mse === undefined) {
      if (startsHandshake(bytes)) {
        this.#plain = true
        return this.plain(bytes)
      }
      if (!this.#directory.mayEncrypt()) throw bad('too many encryption handshakes')
      this.#mse = new MseResponder((key) => this.#directory.infohashByMseKey(key))
    }
    const { write, done } = this.#mse.push(bytes)
    if (write !== undefined) this.transport.send(write)
    if (done === undefined) return
    this.transport.setCiphers(done.encrypt, done.decrypt)
    this.#plain = true
    if (done.rest.length > 0) this.plain(done.rest)
  }

  protected ready(handshake: Handshake): void {
    const answer = this.#directory.answer(handshake.infohash)
    if (answer === undefined) throw bad('a torrent that is not here')
    this.transport.send(formatHandshake(answer))
  }
}

/** A connection that we opened; with `encrypted` it starts with the encryption handshake. */
export class OutgoingHandshake extends Handshaking {
  readonly #ours: Handshake
  readonly #encrypted: boolean
  #mse: MseInitiator | undefined

  constructor(transport: Transport, ours: Handshake, encrypted: boolean, end: HandshakeEnd, time: HandshakeTime) {
    super(transport, end, time)
    this.#ours = ours
    this.#encrypted = encrypted
  }

  /** The socket is open. */
  start(): void {
    if (this.#encrypted) {
      this.#mse = new MseInitiator(this.#ours.infohash)
      this.transport.send(this.#mse.start())
    } else this.transport.send(formatHandshake(this.#ours))
  }

  protected step(bytes: Uint8Array): void {
    if (this.#mse === undefined) return this.plain(bytes)
    const { write, done } = this.#mse.push(bytes)
    if (write !== undefined) this.transport.send(write)
    if (done === undefined) return
    this.#mse = undefined
    this.transport.setCiphers(done.encrypt, done.decrypt)
    this.transport.send(formatHandshake(this.#ours))
    if (done.rest.length > 0) this.plain(done.rest)
  }

  protected ready(handshake: Handshake): void {
    if (Buffer.compare(handshake.infohash, this.#ours.infohash) !== 0) throw bad('a handshake for another torrent')
    if (Buffer.compare(handshake.peerId, this.#ours.peerId) === 0)
      throw new SwarmError('E_PROTOCOL', 'self', 'the peer is this engine itself')
  }
}
