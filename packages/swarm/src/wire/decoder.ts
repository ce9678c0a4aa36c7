import { SwarmError } from '../errors.ts'
import { BODY_BOUNDS, MAX_UNKNOWN_BYTES, MESSAGE, readU32 } from './messages.ts'

/** Receives decoded messages. Views are valid during the call only. */
export interface WireSink {
  /** A complete message of any kind but `piece` and `request`; `body` excludes the id. */
  message(id: number, body: Uint8Array): void
  /** A request: one for each 16 KiB that a seed sends, so nothing is allocated for it. */
  requested(piece: number, begin: number, length: number): void
  /** Before the body is buffered: false if a message of this length is invalid now, such as a bitfield of the wrong size. */
  admits(id: number, bodyBytes: number): boolean
  /** A block begins; its bytes follow in fragments. */
  blockStart(piece: number, begin: number, length: number): void
  blockData(fragment: Uint8Array): void
  blockEnd(): void
}

const LENGTH = 0
const ID = 1
const BODY = 2
const PIECE_HEAD = 3
const PIECE_BODY = 4
const SKIP = 5

/** Bytes of a `piece` message before its block: id, piece and begin. */
const PIECE_BODY_OFFSET = 9

/**
 * Streaming decoder of peer messages (after the handshake). Bytes of blocks are passed on as they arrive and are not
 * collected; a message's length is checked against its id before anything is buffered.
 *
 * Invariant: the buffer is shorter than the limit of the current message. Not re-entrant.
 */
export class WireDecoder {
  readonly #sink: WireSink
  #state = LENGTH
  #length = 0
  #id = 0
  /** Bytes missing from the current section (length, id, body or block). */
  #left = 4
  #held: Uint8Array = new Uint8Array(64)
  #heldBytes = 0
  #stopped = false

  constructor(sink: WireSink) {
    this.#sink = sink
  }

  /** Stops decoding: `push` returns at once from now on. */
  stop(): void {
    this.#stopped = true
  }

  /** @throws SwarmError `E_PROTOCOL`; the decoder is unusable afterwards. */
  push(chunk: Uint8Array): void {
    let at = 0
    const end = chunk.length
    while (at < end && !this.#stopped) {
      if (this.#state === PIECE_BODY || this.#state === SKIP) {
        const take = Math.min(this.#left, end - at)
        if (this.#state === PIECE_BODY) this.#sink.blockData(chunk.subarray(at, at + take))
        at += take
        this.#left -= take
        if (this.#left === 0) this.#endStream()
        continue
      }
      const take = Math.min(this.#left, end - at)
      if (this.#heldBytes === 0 && take === this.#left) {
        this.#section(chunk, at)
      } else {
        this.#hold(chunk, at, take)
        this.#left -= take
        if (this.#left === 0) {
          this.#heldBytes = 0
          this.#section(this.#held, 0)
        }
      }
      at += take
    }
  }

  #hold(chunk: Uint8Array, at: number, take: number): void {
    const needed = this.#heldBytes + this.#left
    if (this.#held.length < needed) {
      const grown = new Uint8Array(needed)
      grown.set(this.#held.subarray(0, this.#heldBytes))
      this.#held = grown
    }
    this.#held.set(chunk.subarray(at, at + take), this.#heldBytes)
    this.#heldBytes += take
  }

  #expect(state: number, bytes: number): void {
    this.#state = state
    this.#left = bytes
  }

  /** The whole section lies in `bytes`, from `at`. */
  #section(bytes: Uint8Array, at: number): void {
    switch (this.#state) {
      case LENGTH:
        this.#length = readU32(bytes, at)
        if (this.#length > MAX_UNKNOWN_BYTES) throw this.#tooLong('message')
        // a length of 0 is a whole message: a keep-alive.
        if (this.#length === 0) this.#expect(LENGTH, 4)
        else this.#expect(ID, 1)
        return
      case ID:
        this.#id = bytes[at]!
        this.#admit()
        return
      case PIECE_HEAD: {
        const length = this.#length - PIECE_BODY_OFFSET
        this.#expect(length === 0 ? LENGTH : PIECE_BODY, length === 0 ? 4 : length)
        this.#sink.blockStart(readU32(bytes, at), readU32(bytes, at + 4), length)
        if (length === 0) this.#sink.blockEnd()
        return
      }
      default: {
        if (this.#id === MESSAGE.request) {
          this.#expect(LENGTH, 4)
          this.#sink.requested(readU32(bytes, at), readU32(bytes, at + 4), readU32(bytes, at + 8))
          return
        }
        const body = bytes.subarray(at, at + this.#length - 1)
        this.#expect(LENGTH, 4)
        this.#sink.message(this.#id, body)
        // otherwise an idle connection would retain the buffer of its largest message.
        if (this.#held.length > 4096) this.#held = new Uint8Array(64)
      }
    }
  }

  #admit(): void {
    const bounds = BODY_BOUNDS[this.#id]
    const bodyBytes = this.#length - 1
    if (bounds === undefined) {
      this.#expect(bodyBytes === 0 ? LENGTH : SKIP, bodyBytes === 0 ? 4 : bodyBytes)
      return
    }
    if (this.#length < bounds[0] || this.#length > bounds[1]) throw this.#tooLong(`message ${this.#id}`)
    if (this.#id === MESSAGE.piece) {
      this.#expect(PIECE_HEAD, 8)
      return
    }
    if (!this.#sink.admits(this.#id, bodyBytes)) throw this.#tooLong(`message ${this.#id}`)
    if (bodyBytes > 0) {
      this.#expect(BODY, bodyBytes)
      return
    }
    this.#expect(LENGTH, 4)
    this.#sink.message(this.#id, EMPTY)
  }

  #endStream(): void {
    const wasPiece = this.#state === PIECE_BODY
    this.#expect(LENGTH, 4)
    if (wasPiece) this.#sink.blockEnd()
  }

  #tooLong(what: string): SwarmError {
    return new SwarmError('E_PROTOCOL', 'message-length', `${what} of ${this.#length} bytes is outside its bounds`, {
      details: { id: this.#id, length: this.#length }
    })
  }
}

const EMPTY = new Uint8Array(0)
