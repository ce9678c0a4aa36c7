import type { Clock, Timer } from '@svc/internal-clock'
import { SwarmError } from '../errors.ts'
import { guarded } from '../net/guarded.ts'
import type { Transport, TransportSink } from '../net/transport.ts'
import { type ByteScript, IncomingBytes } from '../wire/byte-script.ts'
import {
  formatHandshake,
  HANDSHAKE_BYTES,
  type Handshake,
  startsHandshake,
  tryParseHandshake
} from '../wire/handshake.ts'
import { initiateMse, type MseResult, respondMse } from '../wire/mse.ts'

const bad = (message: string): SwarmError => new SwarmError('E_PROTOCOL', 'handshake', message)

/** A connection whose handshake is complete. */
export interface ShakenConnection {
  readonly transport: Transport
  /** The other side's. */
  readonly handshake: Handshake
  /** The bytes that followed the handshake. */
  readonly rest: Uint8Array
}

export interface HandshakeEnd {
  done(connection: ShakenConnection): void
  /** The connection is closed. */
  failed(error: Error | undefined): void
}

export interface HandshakeTime {
  readonly clock: Clock
  readonly timeoutMs: number
}

/** The handshake of a connection, as a script that returns the other side's. */
abstract class Handshaking implements TransportSink {
  protected readonly transport: Transport
  protected readonly incoming = new IncomingBytes()
  readonly #end: HandshakeEnd
  readonly #timer: Timer
  readonly #script: ByteScript<Handshake>
  #over = false

  constructor(transport: Transport, end: HandshakeEnd, { clock, timeoutMs }: HandshakeTime) {
    this.transport = transport
    this.#end = end
    const late = guarded(() => this.#fail(bad('no handshake in time')))
    this.#timer = clock.after(timeoutMs, late)
    this.#script = this.script()
  }

  protected abstract script(): ByteScript<Handshake>

  data(bytes: Uint8Array): void {
    if (this.#over) return
    this.incoming.add(bytes)
    try {
      const { value, done } = this.#script.next()
      if (done !== true) return
      this.#stop()
      this.#end.done({ handshake: value, transport: this.transport, rest: this.incoming.takeAll() })
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  closed(error: Error | undefined): void {
    if (this.#over) return
    this.#stop()
    this.#end.failed(error)
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#stop()
    this.transport.close()
    this.#end.failed(error)
  }

  #stop(): void {
    this.#over = true
    this.#timer.cancel()
  }

  protected *theirs(): ByteScript<Handshake> {
    while (this.incoming.held.length < HANDSHAKE_BYTES) {
      if (!startsHandshake(this.incoming.held)) throw bad('no BitTorrent handshake')
      yield
    }
    const handshake = tryParseHandshake(yield* this.incoming.take(HANDSHAKE_BYTES))
    if (handshake === undefined) throw bad('no BitTorrent handshake')
    return handshake
  }

  /** From here on the stream goes through these ciphers. */
  protected encrypted({ encrypt, decrypt, rest }: MseResult): void {
    this.transport.setCiphers(encrypt, decrypt)
    this.incoming.add(rest)
  }
}

/** Looks up the torrent that an incoming connection asks for. */
export interface HandshakeDirectory {
  /** Our handshake for that torrent, or undefined if there is none. */
  answer(infohash: Uint8Array): Handshake | undefined
  infohashByMseKey(key: string): Uint8Array | undefined
  mayEncrypt(): boolean
}

/** An accepted connection: a plain handshake, or one inside an encryption handshake. */
export class IncomingHandshake extends Handshaking {
  readonly #directory: HandshakeDirectory

  constructor(transport: Transport, directory: HandshakeDirectory, end: HandshakeEnd, time: HandshakeTime) {
    super(transport, end, time)
    this.#directory = directory
  }

  protected *script(): ByteScript<Handshake> {
    if (!startsHandshake(this.incoming.held)) {
      if (!this.#directory.mayEncrypt()) throw bad('too many encryption handshakes')
      const send = (bytes: Uint8Array): void => this.transport.send(bytes)
      this.encrypted(yield* respondMse(this.incoming, send, (key) => this.#directory.infohashByMseKey(key)))
    }
    const handshake = yield* this.theirs()
    const answer = this.#directory.answer(handshake.infohash)
    if (answer === undefined) throw bad('an unknown torrent')
    this.transport.send(formatHandshake(answer))
    return handshake
  }
}

/** A connection that we opened; with `encrypted` it starts with the encryption handshake. */
export class OutgoingHandshake extends Handshaking {
  readonly #ours: Handshake
  readonly #encrypts: boolean

  constructor(transport: Transport, ours: Handshake, encrypted: boolean, end: HandshakeEnd, time: HandshakeTime) {
    super(transport, end, time)
    this.#ours = ours
    this.#encrypts = encrypted
  }

  start(): void {
    this.data(new Uint8Array(0))
  }

  protected *script(): ByteScript<Handshake> {
    const ours = this.#ours
    const send = (bytes: Uint8Array): void => this.transport.send(bytes)
    if (this.#encrypts) this.encrypted(yield* initiateMse(this.incoming, send, ours.infohash))
    send(formatHandshake(ours))
    const handshake = yield* this.theirs()
    if (Buffer.compare(handshake.infohash, ours.infohash) !== 0) throw bad('a handshake for another torrent')
    if (Buffer.compare(handshake.peerId, ours.peerId) === 0)
      throw new SwarmError('E_PROTOCOL', 'self', 'the peer is this engine itself')
    return handshake
  }
}
