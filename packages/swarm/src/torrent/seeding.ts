// Uploading. The life of a peer's requests:
//
//   1. A peer that becomes interested gets a slot, or waits for one (`Choking`).
//   2. Its requests are checked against what we have and queued (`UploadQueue`), which sends while the
//      socket and the upload limit allow; requests of a choked peer, or for what we lack, are rejected.
//   3. Requests for hashes and metadata are answered even if the peer is choked (BEP 52), one at a time and within the
//      upload limit (`ReplyQueue`); refusals are sent at once.
//   4. A choke clears the peer's queue; a file that can no longer be read is removed from all queues.
//
// Owns the queues of each peer, the choker's state and the count of bytes sent. Verified pieces belong to
// `FileProgress`.

import type { TorrentInfo, TorrentLayout } from '@svc/metainfo'
import type { FileProgress } from '../download/file-progress.ts'
import type { PieceHashes } from '../download/piece-hashes.ts'
import type { Emit } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import type { TorrentStorage } from '../storage.ts'
import { HashServer } from '../upload/hash-server.ts'
import type { UploadLimit } from '../upload/limiter.ts'
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
import { Choking } from './choking.ts'
import type { TorrentEnvironment } from './environment.ts'

/** Files of at most so many pieces are told of as a whole. */
const SMALL_PIECES = 4

export interface SeedingDeps {
  readonly env: TorrentEnvironment
  /** Unique in the engine. */
  readonly id: number
  readonly info: TorrentInfo
  readonly layout: TorrentLayout
  readonly storage: TorrentStorage
  readonly hashes: PieceHashes
  readonly progress: FileProgress
  /** The torrent's own limit. */
  readonly bucket: UploadLimit
  /** True: peers of the same fleet are told of a few pieces at a time (`SuperSeed`). */
  readonly firstSeed: boolean
  /** False: no bytes of pieces are sent. */
  readonly upload: boolean
  /** False: neither metadata nor hashes are sent. */
  readonly disclose: boolean
  readonly emit: Emit<'file-lost' | 'sent'>
}

/** Uploads to the peers of one torrent. Invariant: only connected peers have a queue. */
export class Seeding {
  readonly #deps: SeedingDeps
  readonly #buckets: readonly UploadLimit[]
  readonly #server: HashServer
  readonly #choking: Choking
  readonly #uploads = new Map<number, UploadQueue>()
  readonly #replies = new Map<number, ReplyQueue>()
  readonly #superSeed: SuperSeed | undefined
  /** The pieces of small files. */
  readonly #small: readonly number[]

  constructor(deps: SeedingDeps) {
    const { env, id, layout, storage, hashes, progress } = deps
    this.#deps = deps
    this.#buckets = [env.globalBucket, deps.bucket]
    this.#server = new HashServer({
      id,
      layout,
      hashes,
      storage,
      have: progress.have,
      verifier: env.verifier,
      work: env.hashWork
    })
    // documents: some peers want nothing else, and all want them first
    this.#small = layout.files.flatMap(({ firstPiece, pieceCount }) =>
      pieceCount > SMALL_PIECES ? [] : Array.from({ length: pieceCount }, (_, at) => firstPiece + at)
    )
    this.#superSeed = deps.firstSeed
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

  // What peers are told

  /** True: the peer is to be told that we have nothing, and hears of pieces one by one. Those must know "have none" (BEP 6). */
  hidesFrom(peer: Peer): boolean {
    return this.#superSeed !== undefined && peer.trusted && peer.handshake.fast && this.#deps.progress.filesLeft === 0
  }

  /** The peer was greeted. */
  admit(peer: Peer, peers: ReadonlyMap<number, Peer>): void {
    if (!this.hidesFrom(peer)) return
    for (const piece of this.#small) peer.sendHave(piece)
    this.#superSeed!.joined(peer.id, peer.bits!, this.#nowMs)
    this.#offer(peers)
  }

  /** The peer has one more piece, or (undefined) told of its whole set. */
  pieces(peer: Peer, piece: number | undefined, peers: ReadonlyMap<number, Peer>): void {
    const superSeed = this.#superSeed
    if (superSeed === undefined || !superSeed.has(peer.id)) return
    if (piece === undefined) superSeed.toldAll(peer.id)
    else superSeed.got(peer.id, piece, this.#nowMs)
    this.#offer(peers)
  }

  #offer(peers: ReadonlyMap<number, Peer>): void {
    if (this.#superSeed === undefined) return
    const idle = ![...this.#uploads.values()].some(({ queued }) => queued > 0)
    for (const [id, piece] of this.#superSeed.offers(this.#nowMs, idle)) peers.get(id)?.sendHave(piece)
  }

  // Slots

  /** The interest of some peers in us changed. `peers`: all that may be served. */
  interestChanged(peers: readonly Peer[], fetching: boolean): void {
    if (this.#deps.upload) this.#choking.interestChanged(peers, fetching, this.#nowMs)
  }

  #choke(peer: Peer, choke: boolean, nowMs: number): void {
    if (choke) this.#uploads.get(peer.id)?.clear()
    peer.setChoking(choke, nowMs)
  }

  // Blocks

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
    let queue = this.#uploads.get(peer.id)
    if (queue === undefined) {
      const { env, layout, storage, emit } = this.#deps
      queue = new UploadQueue(
        peer,
        {
          clock: env.clock,
          layout,
          storage,
          frames: env.frames,
          runs: env.runs,
          limiter: env.limiter,
          sent: (piece, bytes) => this.#superSeed?.sent(peer.id, piece, bytes, this.#nowMs),
          emit
        },
        this.#buckets
      )
      this.#uploads.set(peer.id, queue)
    }
    return queue
  }

  cancel(peer: Peer, block: BlockRef): void {
    this.#uploads.get(peer.id)?.cancel(block)
  }

  /** The file is no longer available: requests for it are rejected. */
  dropFile(fileIndex: number): void {
    for (const queue of this.#uploads.values()) queue.dropFile(fileIndex)
  }

  /** True when a peer requested blocks and its socket has taken nothing since then. */
  stalled(peer: Peer, sinceMs: number): boolean {
    const since = this.#uploads.get(peer.id)?.stalledSince
    return since !== undefined && since < sinceMs
  }

  // Metadata and hashes

  metadataRequest(peer: Peer, piece: number): void {
    const { info, disclose } = this.#deps
    const id = peer.extended?.ids.get('ut_metadata')
    if (id === undefined || id === 0) return
    const { infoBytes } = info
    const replies = this.#reply(peer)
    const known = disclose && piece * METADATA_PIECE_BYTES < infoBytes.length
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
    if (!this.#deps.disclose || !replies.add(answer)) replies.reject(message)
  }

  #reply(peer: Peer): ReplyQueue {
    let queue = this.#replies.get(peer.id)
    if (queue === undefined) {
      queue = new ReplyQueue(peer, this.#deps.env, this.#buckets)
      this.#replies.set(peer.id, queue)
    }
    return queue
  }

  // Time

  /** The peer disconnected; `peers` are the others. */
  gone(peer: Peer, peers: readonly Peer[], fetching: boolean): void {
    this.#superSeed?.gone(peer.id)
    this.#uploads.get(peer.id)?.close()
    this.#uploads.delete(peer.id)
    this.#replies.get(peer.id)?.close()
    this.#replies.delete(peer.id)
    if (this.#deps.upload && this.#choking.slotsFree(peers)) this.#choking.run(peers, fetching, this.#nowMs)
  }

  /** About once a second. */
  tick(peers: ReadonlyMap<number, Peer>, fetching: boolean, nowMs: number): void {
    this.#offer(peers)
    if (this.#deps.upload) this.#choking.tick([...peers.values()], fetching, nowMs)
  }

  close(): void {
    for (const queue of this.#uploads.values()) queue.close()
    for (const queue of this.#replies.values()) queue.close()
    this.#uploads.clear()
    this.#replies.clear()
    this.#server.close()
  }

  checkInvariants(): void {
    for (const queue of this.#uploads.values()) queue.checkInvariants()
  }
}

const found = (message: Uint8Array): QueuedReply => ({ message, isReject: false })
