// One file because a connection is one state machine: what a message may do depends on all of its states.
//
// The life of a peer:
//
//   1. A socket is dialled or accepted (`PeerSet`, `Swarm`); handshakes are made (`handshaking.ts`), then a Peer takes
//      the transport over.
//   2. `open` sends our side of the greeting: the extended handshake, then what we have. Until the metadata is known
//      and the storage has reported its files, it says nothing about pieces.
//   3. Messages are decoded (`WireDecoder`), checked against the state of the conversation, and become events.
//   4. `close` ends it, from either side; `closed` is its last event.
//
// A Peer owns the state of one conversation, both ways. Others decide which pieces to ask for (`Leeching`), what to send
// (`Seeding`, in upload queues) and whom to connect to (`PeerSet`).
//
// A message is checked, then our state changes, then the event is emitted. Its handler may throw an `E_PROTOCOL` error or
// close the peer; nothing is decoded after that.

import type { Clock } from '@svc/internal-clock'
import { formatAddress, type PeerAddress, plainAddress } from '@svc/internal-net'
import { replyLength } from '@svc/metainfo'
import type { Bitfield } from '../bitfield.ts'
import type { Transport, TransportSink } from '../net/transport.ts'
import { RateMeter } from '../rate-meter.ts'
import { WireDecoder, type WireSink } from '../wire/decoder.ts'
import {
  type ExtendedHandshake,
  type ExtensionName,
  formatExtendedHandshake,
  OUR_EXTENSIONS,
  type OurExtendedHandshake,
  parseExtendedHandshake
} from '../wire/extensions.ts'
import type { Handshake } from '../wire/handshake.ts'
import {
  type BlockRef,
  formatBitfield,
  formatBlockRef,
  formatExtended,
  formatHashRange,
  formatIndex,
  formatRequests,
  formatSimple,
  type HashRange,
  KEEP_ALIVE,
  MESSAGE,
  parseBlockRef,
  parseHashRange,
  readU32
} from '../wire/messages.ts'
import { BlockReceiver } from './block-receiver.ts'
import type { ConnectionEvent } from './peer-event.ts'
import { PeerPieces } from './peer-pieces.ts'
import type { PeerStatus } from './peer-status.ts'
import { PendingHashes } from './pending-hashes.ts'
import { protocolError } from './protocol-error.ts'
import { type PendingRequest, PendingRequests } from './requests.ts'

/** Limit of unsolicited bytes (not counting late answers to cancelled requests). */
const UNSOLICITED_BYTES = 1_048_576
/** A cancelled request that the peer does not mention again is forgotten after this time. */
const VOID_REQUEST_MS = 60_000
const MAX_REQUESTS_WHILE_CHOKED = 300
/** Peers usually send one, and another when something changes. */
const MAX_EXTENDED_HANDSHAKES = 100
const KEEP_ALIVE_MS = 100_000

/**
 * One connection after its handshake. Makes no decisions about pieces.
 *
 * Invariants: nothing is requested while the peer chokes us; there is exactly one `closed` event, and none after it.
 */
export class Peer implements WireSink {
  /** Positive; unique in the engine. */
  readonly id: number
  readonly address: PeerAddress
  readonly incoming: boolean
  readonly handshake: Handshake
  readonly transport: Transport
  /** Its address is within the trusted ranges. */
  readonly trusted: boolean
  readonly pieces: PeerPieces
  readonly requests: PendingRequests
  readonly hashes = new PendingHashes()
  /** When its handshake was complete. */
  readonly joinedAt: number
  readonly down: RateMeter
  readonly up: RateMeter
  readonly #clock: Clock
  readonly #emit: (event: ConnectionEvent<Peer>) => void
  readonly #decoder: WireDecoder
  readonly #receiver: BlockReceiver
  amChoking = true
  amInterested = false
  peerChoking = true
  peerInterested = false
  greeted = false
  extended: ExtendedHandshake | undefined
  /** The first one it named. A later one is ignored: counting its pieces anew takes time for each piece. */
  #zone: string | undefined
  /** It let a request time out, and gets one request at a time until it answers. */
  snubbed = false
  /** Bytes of blocks sent to it since we last unchoked it. */
  sentThisTurn = 0
  turnSince: number
  /** When it last sent a block or unchoked us. */
  downloadActiveAt: number
  lastReceivedAt: number
  /** When it last requested a block or was sent one: a peer that does neither loses its upload slot. */
  uploadActiveAt: number
  #lastSentAt: number
  #unsolicited = 0
  closed = false
  #requestsWhileChoked = 0
  #extendedHandshakes = 0

  constructor(options: {
    readonly id: number
    readonly address: PeerAddress
    readonly incoming: boolean
    readonly handshake: Handshake
    readonly transport: Transport
    readonly trusted: boolean
    /** Undefined while the metadata is unknown. */
    readonly pieceCount: number | undefined
    readonly emit: (event: ConnectionEvent<Peer>) => void
    readonly clock: Clock
  }) {
    const nowMs = options.clock.monotonic()
    this.#clock = options.clock
    this.id = options.id
    this.address = options.address
    this.incoming = options.incoming
    this.handshake = options.handshake
    this.transport = options.transport
    this.trusted = options.trusted
    this.requests = new PendingRequests(options.trusted)
    this.pieces = new PeerPieces(options.pieceCount)
    this.#emit = options.emit
    this.#decoder = new WireDecoder(this)
    this.#receiver = new BlockReceiver(options.id)
    this.down = new RateMeter(nowMs)
    this.up = new RateMeter(nowMs)
    this.joinedAt = nowMs
    this.turnSince = nowMs
    this.downloadActiveAt = nowMs
    this.lastReceivedAt = nowMs
    this.uploadActiveAt = nowMs
    this.#lastSentAt = nowMs
  }

  /** The label of its zone; undefined unless it is trusted. */
  get zone(): string | undefined {
    return this.trusted ? this.#zone : undefined
  }

  /** The address on which others can reach it: the one we dialled, or its host with the port it announced. */
  get listenAddress(): PeerAddress | undefined {
    if (!this.incoming) return this.address
    const port = this.extended?.listenPort
    return port === undefined || port === 0 ? undefined : { host: this.address.host, port }
  }

  get status(): Omit<PeerStatus, 'source'> {
    return {
      address: formatAddress(this.address),
      client: this.extended?.client,
      incoming: this.incoming,
      have: this.pieces.share,
      seed: this.pieces.isSeed,
      encrypted: this.transport.encrypted,
      downloadRate: this.down.bytesPerSecond,
      uploadRate: this.up.bytesPerSecond
    }
  }

  /** The IP address that the socket is connected to; a peer that was dialled by name has another `address`. */
  get remoteHost(): string {
    return plainAddress(this.transport.socket.remoteAddress ?? this.address.host)
  }

  sendHave(piece: number): void {
    this.send(formatIndex(MESSAGE.have, piece))
  }

  /** Starts the conversation: the extended handshake, then the pieces we have (undefined: not known yet). */
  open(ours: OurExtendedHandshake, have: Bitfield | undefined): void {
    this.greeted = true
    this.sendExtendedHandshake(ours)
    if (have === undefined || have.count === 0) {
      if (this.handshake.fast) this.send(formatSimple(MESSAGE.haveNone))
    } else if (have.complete && this.handshake.fast) this.send(formatSimple(MESSAGE.haveAll))
    else this.send(formatBitfield(have.bytes))
  }

  /** Does nothing for peers without the extension protocol. */
  sendExtendedHandshake(ours: OurExtendedHandshake): void {
    if (this.handshake.extended) this.send(formatExtended(0, formatExtendedHandshake(ours)))
  }

  send(bytes: Uint8Array): void {
    this.#lastSentAt = this.#clock.monotonic()
    this.transport.send(bytes)
  }

  /** Does nothing if the peer does not support the extension. */
  sendExtension(name: ExtensionName, payload: Uint8Array): void {
    const id = this.extended?.ids.get(name)
    if (id) this.send(formatExtended(id, payload))
  }

  setChoking(choke: boolean, nowMs: number): void {
    if (choke === this.amChoking) return
    this.amChoking = choke
    this.turnSince = nowMs
    this.sentThisTurn = 0
    this.#requestsWhileChoked = 0
    this.send(formatSimple(choke ? MESSAGE.choke : MESSAGE.unchoke))
  }

  setInterested(interested: boolean): void {
    if (interested === this.amInterested) return
    this.amInterested = interested
    this.send(formatSimple(interested ? MESSAGE.interested : MESSAGE.notInterested))
  }

  /** Sends requests that were added to {@link requests}, in one message to the socket. */
  sendRequests(added: readonly PendingRequest[]): void {
    if (added.length > 0) this.send(formatRequests(added))
  }

  /** The request is no longer needed; its answer may arrive nevertheless. */
  cancel(request: PendingRequest): void {
    if (request.void) return
    this.requests.invalidate(request)
    this.send(formatBlockRef(MESSAGE.cancel, request.piece, request.begin, request.length))
    // without the fast extension a cancelled request has no answer.
    if (!this.handshake.fast) this.requests.remove(request)
  }

  requestHashes(range: HashRange, nowMs: number): void {
    this.hashes.add(range, nowMs)
    this.send(formatHashRange(MESSAGE.hashRequest, range))
  }

  tick(nowMs: number): void {
    this.down.tick(nowMs)
    this.up.tick(nowMs)
    this.requests.prune(nowMs - VOID_REQUEST_MS)
    if (!this.snubbed) this.requests.adapt(this.down.bytesPerSecond)
    if (nowMs - this.#lastSentAt > KEEP_ALIVE_MS) this.send(KEEP_ALIVE)
  }

  readonly sink: TransportSink = {
    data: (bytes, nowMs) => this.#data(bytes, nowMs),
    closed: (error) => this.close(error)
  }

  #data(bytes: Uint8Array, nowMs: number): void {
    this.lastReceivedAt = nowMs
    try {
      this.#decoder.push(bytes)
    } catch (error) {
      this.close(error as Error)
    }
  }

  /** Ends the connection; `error` is what the peer did wrong or what happened to the socket. */
  close(error?: Error): void {
    if (this.closed) return
    this.closed = true
    this.#decoder.stop()
    this.#receiver.abandon()
    this.transport.close()
    this.#emit({ kind: 'closed', peer: this, error })
  }

  // wire

  admits(id: number, bodyBytes: number): boolean {
    const count = this.pieces.bits?.size
    if (id === MESSAGE.bitfield && count !== undefined) return bodyBytes === (count + 7) >> 3
    if (id === MESSAGE.hashes) return this.hashes.awaits(bodyBytes - 48)
    return true
  }

  message(id: number, body: Uint8Array): void {
    switch (id) {
      case MESSAGE.choke:
        return this.#onChoke()
      case MESSAGE.unchoke:
        if (!this.peerChoking) return
        this.peerChoking = false
        this.downloadActiveAt = this.#clock.monotonic()
        return this.#emit({ kind: 'choke', peer: this })
      case MESSAGE.interested:
      case MESSAGE.notInterested:
        return this.#onInterest(id === MESSAGE.interested)
      case MESSAGE.have:
        if (this.pieces.onHave(readU32(body, 0))) this.#emit({ kind: 'pieces', peer: this, piece: readU32(body, 0) })
        return
      case MESSAGE.bitfield:
        if (this.pieces.onBitfield(body)) this.#emit({ kind: 'pieces', peer: this, piece: undefined })
        return
      case MESSAGE.haveAll:
      case MESSAGE.haveNone:
        this.pieces.onHaveAll(id === MESSAGE.haveAll)
        if (id === MESSAGE.haveAll) this.#emit({ kind: 'pieces', peer: this, piece: undefined })
        return
      case MESSAGE.cancel:
        return this.#emit({ kind: 'cancel', peer: this, block: parseBlockRef(body) })
      case MESSAGE.reject:
        return this.#onReject(parseBlockRef(body))
      case MESSAGE.extended:
        return this.#onExtended(body)
      case MESSAGE.hashRequest:
        return this.#emit({ kind: 'hash-request', peer: this, range: parseHashRange(body) })
      case MESSAGE.hashes:
        return this.#onHashes(parseHashRange(body), body.subarray(48))
      case MESSAGE.hashReject:
        return this.#onHashes(parseHashRange(body), undefined)
      default: // port, suggest, allowed fast: hints that are not used
    }
  }

  requested(piece: number, begin: number, length: number): void {
    // a request counts as interest: some clients request blocks without having announced interest.
    if (!this.peerInterested) this.#onInterest(true)
    this.uploadActiveAt = this.lastReceivedAt
    if (this.amChoking) {
      this.#requestsWhileChoked += 1
      if (this.#requestsWhileChoked > MAX_REQUESTS_WHILE_CHOKED)
        throw protocolError('flood', 'too many requests while choked')
    }
    this.#emit({ kind: 'request', peer: this, block: { piece, begin, length } })
  }

  #onChoke(): void {
    if (this.peerChoking) return
    this.peerChoking = true
    // with the fast extension each request is rejected individually; without it the choke cancels them all (BEP 6).
    if (!this.handshake.fast) {
      const pending = [...this.requests.all()]
      this.requests.clear()
      for (const request of pending) if (!request.void) this.#emit({ kind: 'refused', peer: this, request })
    }
    this.#emit({ kind: 'choke', peer: this })
  }

  #onInterest(interested: boolean): void {
    if (this.peerInterested === interested) return
    this.peerInterested = interested
    this.#emit({ kind: 'interest', peer: this })
  }

  #onReject(block: BlockRef): void {
    const request = this.requests.find(block.piece, block.begin)
    if (request === undefined || request.length !== block.length) return
    this.requests.remove(request)
    if (!request.void) this.#emit({ kind: 'refused', peer: this, request })
  }

  #onExtended(body: Uint8Array): void {
    const id = body[0]!
    const payload = body.subarray(1)
    if (id === 0) {
      this.#extendedHandshakes += 1
      if (this.#extendedHandshakes > MAX_EXTENDED_HANDSHAKES)
        throw protocolError('flood', 'too many extended handshakes')
      this.extended = parseExtendedHandshake(payload)
      this.#zone ??= this.extended.zone
      if (this.extended.requestQueue !== undefined) this.requests.queueLimit = Math.max(1, this.extended.requestQueue)
      this.#emit({ kind: 'extended', peer: this })
      return
    }
    for (const name of Object.keys(OUR_EXTENSIONS) as ExtensionName[]) {
      if (OUR_EXTENSIONS[name] === id) return this.#emit({ kind: 'extension', peer: this, extension: name, payload })
    }
  }

  #onHashes(range: HashRange, hashes: Uint8Array | undefined): void {
    const wanted = this.hashes.take(range)
    if (wanted === undefined) {
      // rejects that cross an answer are harmless; unsolicited hashes are not.
      if (hashes !== undefined) throw protocolError('hashes', 'hashes that were not asked for')
      return
    }
    if (hashes !== undefined && hashes.length !== replyLength(wanted))
      throw protocolError('hashes', 'the wrong number of hashes')
    this.#emit({ kind: 'hashes', peer: this, range: wanted, hashes })
  }

  blockStart(piece: number, begin: number, length: number): void {
    const request = this.requests.find(piece, begin)
    if (request === undefined || request.length !== length) {
      this.#unsolicited += length
      if (this.#unsolicited > UNSOLICITED_BYTES) throw protocolError('unsolicited', 'blocks that were not asked for')
      return
    }
    this.#receiver.start(request)
  }

  blockData(fragment: Uint8Array): void {
    this.down.add(fragment.length)
    if (this.#receiver.active) this.#receiver.data(fragment)
  }

  blockEnd(): void {
    if (!this.#receiver.active) return
    const request = this.#receiver.end()
    this.downloadActiveAt = this.lastReceivedAt
    this.snubbed = false
    this.requests.remove(request)
    this.requests.grow(request.length, this.downloadActiveAt - request.sentAt, this.downloadActiveAt)
    this.#emit({ kind: 'block', peer: this, request })
  }
}
