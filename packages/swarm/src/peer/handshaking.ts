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

/** Our side of a handshake; returns the other side's. */
export type HandshakeScript = (incoming: IncomingBytes, transport: Transport) => ByteScript<Handshake>

/** A connection until its handshake is complete. */
export class Handshaking implements TransportSink {
  readonly #transport: Transport
  readonly #incoming = new IncomingBytes()
  readonly #end: HandshakeEnd
  readonly #timer: Timer
  readonly #script: ByteScript<Handshake>
  #over = false

  constructor(transport: Transport, script: HandshakeScript, end: HandshakeEnd, { clock, timeoutMs }: HandshakeTime) {
    this.#transport = transport
    this.#end = end
    const late = guarded(() => this.#fail(bad('no handshake in time')))
    this.#timer = clock.after(timeoutMs, late)
    this.#script = script(this.#incoming, transport)
    transport.setSink(this)
  }

  /** Begins without a byte from the other side, on a connection that we opened. */
  start(): void {
    this.data(new Uint8Array(0))
  }

  data(bytes: Uint8Array): void {
    if (this.#over) return
    this.#incoming.add(bytes)
    try {
      const { value, done } = this.#script.next()
      if (done !== true) return
      this.#stop()
      this.#end.done({ handshake: value, transport: this.#transport, rest: this.#incoming.takeAll() })
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
    this.#transport.close()
    this.#end.failed(error)
  }

  #stop(): void {
    this.#over = true
    this.#timer.cancel()
  }
}

function* theirHandshake(incoming: IncomingBytes): ByteScript<Handshake> {
  while (incoming.held.length < HANDSHAKE_BYTES) {
    if (!startsHandshake(incoming.held)) throw bad('no BitTorrent handshake')
    yield
  }
  const handshake = tryParseHandshake(yield* incoming.take(HANDSHAKE_BYTES))
  if (handshake === undefined) throw bad('no BitTorrent handshake')
  return handshake
}

/** From here on the stream goes through these ciphers. */
function useCiphers(incoming: IncomingBytes, transport: Transport, { encrypt, decrypt, rest }: MseResult): void {
  transport.setCiphers(encrypt, decrypt)
  incoming.add(rest)
}

/** Looks up the torrent that an incoming connection asks for. */
export interface HandshakeDirectory {
  /** Our handshake for that torrent, or undefined if there is none. */
  answer(infohash: Uint8Array): Handshake | undefined
  infohashByMseKey(key: string): Uint8Array | undefined
  mayEncrypt(): boolean
}

/** For an accepted connection: a plain handshake, or one inside an encryption handshake. */
export const answerHandshake = (directory: HandshakeDirectory): HandshakeScript =>
  function* (incoming, transport) {
    if (!startsHandshake(incoming.held)) {
      if (!directory.mayEncrypt()) throw bad('too many encryption handshakes')
      const send = (bytes: Uint8Array): void => transport.send(bytes)
      const result = yield* respondMse(incoming, send, (key) => directory.infohashByMseKey(key))
      useCiphers(incoming, transport, result)
    }
    const handshake = yield* theirHandshake(incoming)
    const answer = directory.answer(handshake.infohash)
    if (answer === undefined) throw bad('an unknown torrent')
    transport.send(formatHandshake(answer))
    return handshake
  }

/** For a connection that we opened; with `encrypted` it starts with the encryption handshake. */
export const openHandshake = (ours: Handshake, encrypted: boolean): HandshakeScript =>
  function* (incoming, transport) {
    const send = (bytes: Uint8Array): void => transport.send(bytes)
    if (encrypted) useCiphers(incoming, transport, yield* initiateMse(incoming, send, ours.infohash))
    send(formatHandshake(ours))
    const handshake = yield* theirHandshake(incoming)
    if (Buffer.compare(handshake.infohash, ours.infohash) !== 0) throw bad('a handshake for another torrent')
    if (Buffer.compare(handshake.peerId, ours.peerId) === 0)
      throw new SwarmError('E_PROTOCOL', 'self', 'the peer is this engine itself')
    return handshake
  }
