// One file because a connection is one state machine: what each message may do depends on all of its states (choking,
// interest, fast set, requests both ways).

import { formatAddress, type PeerAddress } from '@svc/internal-net'
import { replyLength } from '@svc/metainfo'
import { Bitfield } from '../bitfield.ts'
import { SwarmError } from '../errors.ts'
import type { Transport, TransportSink } from '../net/transport.ts'
import { RateMeter } from '../rate-meter.ts'
import { WireDecoder, type WireSink } from '../wire/decoder.ts'
import {
  type ExtendedHandshake,
  type ExtensionName,
  formatExtendedHandshake,
  OUR_EXTENSIONS,
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
  formatSimple,
  type HashRange,
  KEEP_ALIVE,
  MESSAGE,
  parseHashRange,
  readU32
} from '../wire/messages.ts'
import { BlockReceiver } from './block-receiver.ts'
import { PendingHashes } from './pending-hashes.ts'
import { type PendingRequest, PendingRequests } from './requests.ts'

/** What a peer connection tells its torrent. All bytes are views, valid during the call. */
export interface PeerOwner {
  /** Undefined until the metadata is known. */
  readonly pieceCount: number | undefined
  readonly infoBytes: Uint8Array | undefined
  readonly listenPort: number | undefined
  readonly uploadOnly: boolean
  readonly pexEnabled: boolean
  readonly clientName: string
  peerExtended(peer: Peer): void
  /** The peer's pieces changed: one more, or (undefined) the whole set. */
  peerHas(peer: Peer, piece: number | undefined): void
  peerInterest(peer: Peer): void
  /** It choked or unchoked us; requests that a choke voids are passed on before. */
  peerChoke(peer: Peer): void
  /** Blocks of this request are here; all of them when the piece was not taken away. */
  peerBlock(peer: Peer, request: PendingRequest): void
  /** The request will not be answered. */
  peerRejected(peer: Peer, request: PendingRequest): void
  peerRequest(peer: Peer, block: BlockRef): void
  peerCancel(peer: Peer, block: BlockRef): void
  peerMessage(peer: Peer, extension: ExtensionName, payload: Uint8Array): void
  peerHashRequest(peer: Peer, range: HashRange): void
  peerHashes(peer: Peer, range: HashRange, hashes: Uint8Array | undefined): void
  peerClosed(peer: Peer, error: Error | undefined): void
}

/** Bytes that may come without having been asked for (late answers to cancels apart). */
const UNSOLICITED_BYTES = 1_048_576
/** Haves kept while the piece count is unknown: a bitfield of 2 M pieces. */
const EARLY_PIECES = 2_097_152
const KEEP_ALIVE_MS = 100_000

/**
 * One connection after its handshake: the wire protocol's state and what is outstanding both ways. Decides nothing about
 * pieces; its owner does.
 * Invariants: nothing is requested while the peer chokes us; at most one `PeerOwner.peerClosed`, and nothing after it.
 */
export class Peer implements WireSink {
  /** Positive; unique in the engine. */
  readonly id: number
  readonly address: PeerAddress
  readonly incoming: boolean
  readonly handshake: Handshake
  readonly transport: Transport
  readonly requests = new PendingRequests()
  readonly hashes = new PendingHashes()
  readonly down: RateMeter
  readonly up: RateMeter
  readonly #owner: PeerOwner
  readonly #decoder: WireDecoder
  readonly #receiver: BlockReceiver
  amChoking = true
  amInterested = false
  peerChoking = true
  peerInterested = false
  /** Pieces the peer has; sized when the metadata is known. */
  bits: Bitfield | undefined
  /** All pieces, also before their number is known. */
  hasAll = false
  extended: ExtendedHandshake | undefined
  /** Answers nothing: gets one request at a time. */
  snubbed = false
  /** Sent since we unchoked it. */
  sentThisTurn = 0
  turnSince: number
  lastBlockAt: number
  lastReceivedAt: number
  readonly connectedAt: number
  #lastSentAt: number
  #early: Set<number> | undefined
  #earlyBits: Uint8Array | undefined
  #unsolicited = 0
  #dropping = false
  #sawFirst = false
  #closed = false
  #requestsWhileChoked = 0

  constructor(options: {
    readonly id: number
    readonly address: PeerAddress
    readonly incoming: boolean
    readonly handshake: Handshake
    readonly transport: Transport
    readonly owner: PeerOwner
    readonly nowMs: number
  }) {
    this.id = options.id
    this.address = options.address
    this.incoming = options.incoming
    this.handshake = options.handshake
    this.transport = options.transport
    this.#owner = options.owner
    this.#decoder = new WireDecoder(this)
    this.#receiver = new BlockReceiver(options.id)
    this.down = new RateMeter(options.nowMs)
    this.up = new RateMeter(options.nowMs)
    this.turnSince = options.nowMs
    this.lastBlockAt = options.nowMs
    this.lastReceivedAt = options.nowMs
    this.connectedAt = options.nowMs
    this.#lastSentAt = options.nowMs
    if (options.owner.pieceCount !== undefined) this.bits = new Bitfield(options.owner.pieceCount)
  }

  get label(): string {
    return formatAddress(this.address)
  }

  get closed(): boolean {
    return this.#closed
  }

  get isSeed(): boolean {
    return this.hasAll || this.bits?.complete === true
  }

  /** The conversation was opened by us. */
  greeted = false

  sendHave(piece: number): void {
    this.send(formatIndex(MESSAGE.have, piece))
  }

  /** Sends what opens the conversation: extended handshake, then what we have. */
  open(have: Bitfield | undefined): void {
    this.greeted = true
    if (this.handshake.extended) this.sendExtendedHandshake()
    if (have === undefined || have.count === 0) {
      if (this.handshake.fast) this.send(formatSimple(MESSAGE.haveNone))
    } else if (have.complete && this.handshake.fast) this.send(formatSimple(MESSAGE.haveAll))
    else this.send(formatBitfield(have.bytes))
  }

  sendExtendedHandshake(): void {
    const owner = this.#owner
    this.send(
      formatExtended(
        0,
        formatExtendedHandshake({
          metadataBytes: owner.infoBytes?.length,
          listenPort: owner.listenPort,
          client: owner.clientName,
          uploadOnly: owner.uploadOnly,
          pex: owner.pexEnabled
        })
      )
    )
  }

  send(bytes: Uint8Array): void {
    this.#lastSentAt = performance.now()
    this.transport.send(bytes)
  }

  /** False when the peer does not know the extension. */
  sendExtension(name: ExtensionName, payload: Uint8Array): boolean {
    const id = this.extended?.ids.get(name)
    if (id === undefined || id === 0) return false
    this.send(formatExtended(id, payload))
    return true
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

  request(request: PendingRequest): void {
    this.requests.add(request)
    this.send(formatBlockRef(MESSAGE.request, request.piece, request.begin, request.length))
  }

  /** Not wanted any more; the answer may come all the same. */
  cancel(request: PendingRequest): void {
    if (request.void) return
    this.requests.invalidate(request)
    this.send(formatBlockRef(MESSAGE.cancel, request.piece, request.begin, request.length))
    // Without the fast extension a cancelled request has no answer.
    if (!this.handshake.fast) this.requests.remove(request)
  }

  requestHashes(range: HashRange, nowMs: number): void {
    this.hashes.add(range, nowMs)
    this.send(formatHashRange(MESSAGE.hashRequest, range))
  }

  /** The metadata has come: what the peer said before is checked against it. */
  setPieceCount(count: number): void {
    const bits = new Bitfield(count)
    if (this.hasAll) bits.setAll()
    else if (this.#earlyBits !== undefined && !bits.load(this.#earlyBits))
      throw protocolError('bitfield', 'a bitfield of the wrong size')
    for (const piece of this.#early ?? []) {
      if (piece >= count) throw protocolError('have', 'a piece that does not exist')
      bits.set(piece)
    }
    this.#early = undefined
    this.#earlyBits = undefined
    this.bits = bits
  }

  has(piece: number): boolean {
    return this.hasAll || this.bits?.has(piece) === true
  }

  tick(nowMs: number): void {
    this.down.tick(nowMs)
    this.up.tick(nowMs)
    this.requests.prune(nowMs - 60_000)
    if (!this.snubbed) this.requests.adapt(this.down.bytesPerSecond)
    if (nowMs - this.#lastSentAt > KEEP_ALIVE_MS) this.send(KEEP_ALIVE)
  }

  /** The peer's end of the transport. */
  readonly sink: TransportSink = {
    data: (bytes) => this.#data(bytes),
    closed: (error) => this.close(error)
  }

  #data(bytes: Uint8Array): void {
    this.lastReceivedAt = performance.now()
    try {
      this.#decoder.push(bytes)
    } catch (error) {
      this.close(error as Error)
    }
  }

  /** Ends the connection; an error is what the peer did wrong or what happened to the socket. */
  close(error?: Error): void {
    if (this.#closed) return
    this.#closed = true
    this.#decoder.stop()
    this.#receiver.abandon()
    this.transport.close()
    this.#owner.peerClosed(this, error)
  }

  // Wire

  keepAlive(): void {}

  admits(id: number, bodyBytes: number): boolean {
    const count = this.#owner.pieceCount
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
        this.lastBlockAt = performance.now()
        return this.#owner.peerChoke(this)
      case MESSAGE.interested:
      case MESSAGE.notInterested:
        return this.#onInterest(id === MESSAGE.interested)
      case MESSAGE.have:
        return this.#onHave(readU32(body, 0))
      case MESSAGE.bitfield:
        return this.#onBitfield(body)
      case MESSAGE.haveAll:
      case MESSAGE.haveNone:
        return this.#onHaveAll(id === MESSAGE.haveAll)
      case MESSAGE.request:
        return this.#onRequest(blockRef(body))
      case MESSAGE.cancel:
        return this.#owner.peerCancel(this, blockRef(body))
      case MESSAGE.reject:
        return this.#onReject(blockRef(body))
      case MESSAGE.extended:
        return this.#onExtended(body)
      case MESSAGE.hashRequest:
        return this.#owner.peerHashRequest(this, parseHashRange(body))
      case MESSAGE.hashes:
        return this.#onHashes(parseHashRange(body), body.subarray(48))
      case MESSAGE.hashReject:
        return this.#onHashes(parseHashRange(body), undefined)
      default: // port, suggest, allowed fast: hints that are not used
    }
  }

  #onChoke(): void {
    if (this.peerChoking) return
    this.peerChoking = true
    // With the fast extension each request is rejected one by one; without it the choke voids them all (BEP 6).
    if (!this.handshake.fast) {
      const pending = [...this.requests.all()]
      this.requests.clear()
      for (const request of pending) if (!request.void) this.#owner.peerRejected(this, request)
    }
    this.#owner.peerChoke(this)
  }

  #onInterest(interested: boolean): void {
    if (this.peerInterested === interested) return
    this.peerInterested = interested
    this.#owner.peerInterest(this)
  }

  #onHave(piece: number): void {
    this.#sawFirst = true
    if (this.bits === undefined) {
      if (piece >= EARLY_PIECES) throw protocolError('have', 'a piece that cannot exist')
      this.#early ??= new Set()
      if (this.#early.size >= 100_000) throw protocolError('have', 'too many pieces announced one by one')
      this.#early.add(piece)
      return
    }
    if (piece >= this.bits.size) throw protocolError('have', 'a piece that does not exist')
    if (this.bits.set(piece)) this.#owner.peerHas(this, piece)
  }

  #onBitfield(body: Uint8Array): void {
    if (this.#sawFirst) throw protocolError('bitfield', 'a bitfield after other messages')
    this.#sawFirst = true
    if (this.bits === undefined) {
      this.#earlyBits = new Uint8Array(body)
      return
    }
    if (!this.bits.load(body)) throw protocolError('bitfield', 'a bitfield with bits beyond the last piece')
    this.#owner.peerHas(this, undefined)
  }

  #onHaveAll(all: boolean): void {
    if (this.#sawFirst) throw protocolError('bitfield', 'have all or none after other messages')
    this.#sawFirst = true
    if (!all) return
    this.hasAll = true
    this.bits?.setAll()
    this.#owner.peerHas(this, undefined)
  }

  #onRequest(block: BlockRef): void {
    // A request from one who said it was not interested counts as interest: clients forget to say so.
    if (!this.peerInterested) this.#onInterest(true)
    if (this.amChoking) {
      this.#requestsWhileChoked += 1
      if (this.#requestsWhileChoked > 300) throw protocolError('flood', 'too many requests while choked')
    }
    this.#owner.peerRequest(this, block)
  }

  #onReject(block: BlockRef): void {
    const request = this.requests.find(block.piece, block.begin)
    if (request === undefined || request.length !== block.length) return
    this.requests.remove(request)
    if (!request.void) this.#owner.peerRejected(this, request)
  }

  #onExtended(body: Uint8Array): void {
    const id = body[0]!
    const payload = body.subarray(1)
    if (id === 0) {
      this.extended = parseExtendedHandshake(payload)
      if (this.extended.requestQueue !== undefined) this.requests.queueLimit = Math.max(1, this.extended.requestQueue)
      this.#owner.peerExtended(this)
      return
    }
    for (const name of Object.keys(OUR_EXTENSIONS) as ExtensionName[]) {
      if (OUR_EXTENSIONS[name] === id) return this.#owner.peerMessage(this, name, payload)
    }
  }

  #onHashes(range: HashRange, hashes: Uint8Array | undefined): void {
    const wanted = this.hashes.take(range)
    if (wanted === undefined) {
      // Rejects that cross an answer are harmless; hashes that nobody asked for are not.
      if (hashes !== undefined) throw protocolError('hashes', 'hashes that were not asked for')
      return
    }
    if (hashes !== undefined && hashes.length !== replyLength(wanted))
      throw protocolError('hashes', 'the wrong number of hashes')
    this.#owner.peerHashes(this, wanted, hashes)
  }

  blockStart(piece: number, begin: number, length: number): void {
    const request = this.requests.find(piece, begin)
    if (request === undefined || request.length !== length) {
      this.#unsolicited += length
      if (this.#unsolicited > UNSOLICITED_BYTES) throw protocolError('unsolicited', 'blocks that were not asked for')
      this.#dropping = true
      return
    }
    this.#dropping = false
    this.#receiver.start(request)
  }

  blockData(fragment: Uint8Array): void {
    this.down.add(fragment.length)
    if (!this.#dropping) this.#receiver.data(fragment)
  }

  blockEnd(): void {
    if (this.#dropping) return
    const request = this.#receiver.end()
    this.lastBlockAt = performance.now()
    this.snubbed = false
    this.requests.remove(request)
    this.requests.grow(request.length)
    this.#owner.peerBlock(this, request)
  }

  checkInvariants(): void {
    this.requests.checkInvariants()
    this.#decoder.checkInvariants()
    if (this.peerChoking && this.requests.live > 0 && !this.handshake.fast)
      throw new Error('requests at a choking peer')
  }
}

const blockRef = (body: Uint8Array): BlockRef => ({
  piece: readU32(body, 0),
  begin: readU32(body, 4),
  length: readU32(body, 8)
})

export const protocolError = (reason: string, message: string): SwarmError =>
  new SwarmError('E_PROTOCOL', reason, `the peer sent ${message}`)
