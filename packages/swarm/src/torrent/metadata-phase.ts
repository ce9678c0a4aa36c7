// The first phase of a torrent that was added by its infohash: it requests the info dictionary from peers (BEP 9) and
// does nothing else. It ends with `metadata`, once; the torrent then continues with an ActivePhase, or fails.

import { equalBytes, sha256, type TorrentInfo, TorrentLayout } from '@svc/metainfo'
import type { Emit, PeerEvent } from '../events.ts'
import { reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import {
  formatMetadataReject,
  formatMetadataRequest,
  METADATA_PIECE_BYTES,
  type MetadataMessage,
  parseMetadataMessage
} from '../wire/extensions.ts'
import type { TorrentEnvironment } from './environment.ts'

interface Attempt {
  readonly totalBytes: number
  readonly pieces: (Uint8Array | undefined)[]
  missing: number
  requested: number
  lastAt: number
}

const MAX_ATTEMPTS = 3
const IN_FLIGHT = 8
const TIMEOUT_MS = 10_000

/**
 * Fetches from up to three peers at once, each sending the whole of it, so that a wrong dictionary has a single sender.
 * Uses at most 4 MiB of memory per peer.
 *
 * Invariants: nothing but metadata is requested from peers, and no pieces are announced to them; a peer is tried once.
 */
export class MetadataPhase {
  readonly state = 'metadata'
  readonly #infohash: Uint8Array
  readonly #env: Pick<TorrentEnvironment, 'clock' | 'parseInfo'>
  readonly #emit: Emit<'metadata' | 'bad-data' | 'failed'>
  readonly #attempts = new Map<number, Attempt>()
  readonly #useless = new Set<number>()
  #finished = false
  #isClosed = false

  constructor(
    infohash: Uint8Array,
    env: Pick<TorrentEnvironment, 'clock' | 'parseInfo'>,
    emit: Emit<'metadata' | 'bad-data' | 'failed'>
  ) {
    this.#infohash = infohash
    this.#env = env
    this.#emit = emit
  }

  /** @throws SwarmError `E_PROTOCOL` when the peer requests something that was never announced to it. */
  take(event: PeerEvent): void {
    const { peer } = event
    switch (event.kind) {
      case 'extended':
        return this.#offer(peer)
      case 'extension': {
        const message = event.extension === 'ut_metadata' ? parseMetadataMessage(event.payload) : undefined
        if (message?.kind === 'request') peer.sendExtension('ut_metadata', formatMetadataReject(message.piece))
        else if (message !== undefined) this.#answer(peer, message)
        return
      }
      case 'request':
        throw protocolError('request', 'a request before it was told of any piece')
      case 'hash-request':
        throw protocolError('hashes', 'a hash request before there is metadata')
      case 'closed':
        this.#attempts.delete(peer.id)
        this.#useless.delete(peer.id)
        return
      default: // the peer object records its pieces and interest until there is metadata
    }
  }

  /** The peer announced that it has the metadata. */
  #offer(peer: Peer): void {
    if (this.#finished || this.#attempts.size >= MAX_ATTEMPTS) return
    if (this.#attempts.has(peer.id) || this.#useless.has(peer.id)) return
    const totalBytes = peer.extended?.metadataBytes
    if (!totalBytes || !peer.extended!.ids.get('ut_metadata')) return
    const count = Math.ceil(totalBytes / METADATA_PIECE_BYTES)
    const pieces = new Array<Uint8Array | undefined>(count).fill(undefined)
    const attempt: Attempt = { totalBytes, pieces, missing: count, requested: 0, lastAt: this.#env.clock.monotonic() }
    this.#attempts.set(peer.id, attempt)
    while (attempt.requested < Math.min(count, IN_FLIGHT)) this.#ask(peer, attempt)
  }

  #ask(peer: Peer, attempt: Attempt): void {
    if (attempt.requested >= attempt.pieces.length) return
    peer.sendExtension('ut_metadata', formatMetadataRequest(attempt.requested))
    attempt.requested += 1
  }

  #answer(peer: Peer, message: MetadataMessage): void {
    const attempt = this.#attempts.get(peer.id)
    if (attempt === undefined || this.#finished) return
    if (message.kind !== 'data') return this.#giveUp(peer.id)
    const expected =
      message.piece === attempt.pieces.length - 1
        ? attempt.totalBytes - message.piece * METADATA_PIECE_BYTES
        : METADATA_PIECE_BYTES
    if (message.piece >= attempt.requested || message.bytes.length !== expected) return this.#giveUp(peer.id)
    if (attempt.pieces[message.piece] !== undefined) return
    attempt.pieces[message.piece] = new Uint8Array(message.bytes)
    attempt.missing -= 1
    attempt.lastAt = this.#env.clock.monotonic()
    this.#ask(peer, attempt)
    if (attempt.missing > 0) return
    const info = new Uint8Array(Buffer.concat(attempt.pieces as Uint8Array[]))
    this.#giveUp(peer.id)
    if (!equalBytes(sha256(info), this.#infohash))
      return this.#emit({ kind: 'bad-data', sender: peer.id, reason: 'wrong metadata', piece: undefined })
    this.#finished = true
    this.#attempts.clear()
    void this.#done(info).catch(reportDefect)
  }

  #giveUp(peerId: number): void {
    this.#attempts.delete(peerId)
    this.#useless.add(peerId)
  }

  async #done(infoBytes: Uint8Array): Promise<void> {
    let info: TorrentInfo
    try {
      info = await this.#env.parseInfo(infoBytes)
      // pieces that no receive slot holds are refused here, while the error can still be reported.
      new TorrentLayout(info)
    } catch (error) {
      // the bytes match the infohash, so no other peer has better ones.
      if (!this.#isClosed) this.#emit({ kind: 'failed', error: error as Error })
      return
    }
    if (!this.#isClosed) this.#emit({ kind: 'metadata', info })
  }

  /** About once a second: gives up on peers that do not answer, and tries others. */
  tick(peers: Iterable<Peer>, nowMs: number): void {
    for (const [peerId, { lastAt }] of this.#attempts) if (nowMs - lastAt > TIMEOUT_MS) this.#giveUp(peerId)
    for (const peer of peers) this.#offer(peer)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }
}
