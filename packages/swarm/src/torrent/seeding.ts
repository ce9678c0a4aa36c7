// Uploading. The life of a peer's requests:
//
//   1. A peer that becomes interested gets a slot, or waits for one (`Choking`).
//   2. Its requests are checked against what we have and queued (`UploadQueue`), which sends while the
//      socket and the upload limit allow; requests of a choked peer, or for what we lack, are rejected.
//   3. Requests for hashes and metadata are answered even if the peer is choked (BEP 52), one at a time and within the
//      upload limit (`ReplyQueue`); refusals are sent at once.
//   4. A choke clears the peer's queue; a file that can no longer be read is removed from all queues.

import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import { Choking } from '../upload/choker.ts'
import { HashServer } from '../upload/hash-server.ts'
import { type QueuedReply, ReplyQueue } from '../upload/reply-queue.ts'
import { SuperSeed } from '../upload/super-seed.ts'
import { UploadQueue } from '../upload/upload-queue.ts'
import { formatMetadataData, formatMetadataReject, METADATA_PIECE_BYTES } from '../wire/extensions.ts'
import {
  type BlockRef,
  formatBlockRef,
  formatExtended,
  formatHashes,
  formatHashRange,
  type HashRange,
  MAX_REQUEST_BYTES,
  MESSAGE
} from '../wire/messages.ts'
import type { TorrentParts } from './environment.ts'

/** Files of at most this many pieces are announced as a whole. */
const SMALL_PIECES = 4

/** Uploads to the peers of one torrent. Invariant: only connected peers have a queue. */
export class Seeding {
  readonly #deps: TorrentParts
  readonly #server: HashServer
  readonly #choking: Choking
  readonly #queues = new Map<number, UploadQueue>()
  readonly #replies = new Map<number, ReplyQueue>()
  readonly #superSeed: SuperSeed | undefined
  readonly #small: readonly number[]

  constructor(deps: TorrentParts) {
    const { env, layout, options } = deps
    this.#deps = deps
    this.#server = new HashServer(deps)
    // documents: some peers want nothing else, and all want them first
    this.#small = layout.files.flatMap(({ firstPiece, pieceCount }) =>
      pieceCount > SMALL_PIECES ? [] : Array.from({ length: pieceCount }, (_, at) => firstPiece + at)
    )
    this.#superSeed = options.firstSeed
      ? new SuperSeed({
          pieceCount: layout.pieceCount,
          pieceBytes: layout.pieceLengthBytes,
          sizeOf: (piece) => layout.span(piece).lengthBytes,
          known: this.#small,
          random: env.random
        })
      : undefined
    this.#choking = new Choking(env.uploadSlots, (peer, choke, now) => this.#choke(peer, choke, now))
  }

  get #nowMs(): number {
    return this.#deps.env.clock.monotonic()
  }

  // what peers are told

  /** True: the peer is told that we have nothing, and hears of pieces one by one. It must know "have none" (BEP 6). */
  hidesFrom(peer: Peer): boolean {
    return this.#superSeed !== undefined && peer.trusted && peer.handshake.fast && this.#deps.progress.filesLeft === 0
  }

  admit(peer: Peer): void {
    if (!this.hidesFrom(peer)) return
    for (const piece of this.#small) peer.sendHave(piece)
    this.#superSeed!.joined(peer.id, peer.pieces.bits!, this.#nowMs)
    this.#offer()
  }

  /** The peer has one more piece, or (undefined) announced its whole set. */
  pieces(peer: Peer, piece: number | undefined): void {
    const superSeed = this.#superSeed
    if (superSeed === undefined || !superSeed.has(peer.id)) return
    if (piece === undefined) superSeed.toldAll(peer.id)
    else superSeed.got(peer.id, piece, this.#nowMs)
    this.#offer()
  }

  #offer(): void {
    if (this.#superSeed === undefined) return
    const idle = ![...this.#queues.values()].some(({ queued }) => queued > 0)
    for (const [id, piece] of this.#superSeed.offers(this.#nowMs, idle)) this.#deps.peers.get(id)?.sendHave(piece)
  }

  // slots

  get #uploads(): boolean {
    return this.#deps.options.upload !== false
  }

  get #peers(): readonly Peer[] {
    return [...this.#deps.peers.values()]
  }

  interestChanged(fetching: boolean): void {
    if (this.#uploads) this.#choking.interestChanged(this.#peers, fetching, this.#nowMs)
  }

  #choke(peer: Peer, choke: boolean, nowMs: number): void {
    if (choke) this.#queues.get(peer.id)?.clear()
    peer.setChoking(choke, nowMs)
  }

  // blocks

  /** @throws SwarmError `E_PROTOCOL`. */
  request(peer: Peer, block: BlockRef): void {
    const { layout, progress } = this.#deps
    const { piece, begin, length } = block
    if (
      piece >= layout.pieceCount ||
      length < 1 ||
      length > MAX_REQUEST_BYTES ||
      begin + length > layout.pieceLengthBytes
    ) {
      throw protocolError('request', 'a request outside the torrent')
    }
    if (!peer.amChoking && progress.have.has(piece)) this.#upload(peer).add(block)
    else if (peer.handshake.fast) peer.send(formatBlockRef(MESSAGE.reject, piece, begin, length))
  }

  #upload(peer: Peer): UploadQueue {
    let queue = this.#queues.get(peer.id)
    if (queue === undefined) {
      const sent = (piece: number, bytes: number): void => this.#superSeed?.sent(peer.id, piece, bytes, this.#nowMs)
      queue = new UploadQueue(peer, this.#deps, sent)
      this.#queues.set(peer.id, queue)
    }
    return queue
  }

  cancel(peer: Peer, block: BlockRef): void {
    this.#queues.get(peer.id)?.cancel(block)
  }

  /** The file is no longer available: requests for it are rejected. */
  dropFile(fileIndex: number): void {
    for (const queue of this.#queues.values()) queue.dropFile(fileIndex)
  }

  /** True when a peer requested blocks and its socket has taken nothing since then. */
  stalled(peer: Peer, sinceMs: number): boolean {
    const since = this.#queues.get(peer.id)?.stalledSince
    return since !== undefined && since < sinceMs
  }

  // metadata and hashes

  metadataRequest(peer: Peer, piece: number): void {
    const { info, options } = this.#deps
    const id = peer.extended?.ids.get('ut_metadata')
    if (!id) return
    const { infoBytes } = info
    const replies = this.#reply(peer)
    const known = options.disclose !== false && piece * METADATA_PIECE_BYTES < infoBytes.length
    if (known && replies.add(() => found(formatExtended(id, formatMetadataData(piece, infoBytes))))) return
    replies.reject(formatExtended(id, formatMetadataReject(piece)))
  }

  /** `opened`: resolves when the storage has reported its files. Every request is answered or rejected. */
  hashRequest(peer: Peer, range: HashRange, opened: Promise<void>): void {
    const message = formatHashRange(MESSAGE.hashReject, range)
    const reject: QueuedReply = { message, isReject: true }
    const answer = async (): Promise<QueuedReply> => {
      try {
        await opened
        const hashes = await this.#server.answer(range)
        return hashes === undefined ? reject : found(formatHashes(range, hashes))
      } catch {
        return reject
      }
    }
    const replies = this.#reply(peer)
    if (this.#deps.options.disclose === false || !replies.add(answer)) replies.reject(message)
  }

  #reply(peer: Peer): ReplyQueue {
    let queue = this.#replies.get(peer.id)
    if (queue === undefined) {
      queue = new ReplyQueue(peer, this.#deps.env)
      this.#replies.set(peer.id, queue)
    }
    return queue
  }

  // time

  gone(peer: Peer, fetching: boolean): void {
    this.#superSeed?.gone(peer.id)
    this.#queues.get(peer.id)?.close()
    this.#queues.delete(peer.id)
    this.#replies.get(peer.id)?.close()
    this.#replies.delete(peer.id)
    if (this.#uploads && this.#choking.slotsFree(this.#peers)) this.#choking.run(this.#peers, fetching, this.#nowMs)
  }

  tick(fetching: boolean, nowMs: number): void {
    this.#offer()
    if (this.#uploads) this.#choking.tick(this.#peers, fetching, nowMs)
  }

  close(): void {
    for (const queue of this.#queues.values()) queue.close()
    for (const queue of this.#replies.values()) queue.close()
    this.#queues.clear()
    this.#replies.clear()
    this.#server.close()
  }
}

const found = (message: Uint8Array): QueuedReply => ({ message, isReject: false })
