import type { Clock } from '@svc/internal-clock'
import { equalBytes, sha256 } from '@svc/metainfo'
import type { Emit } from '../events.ts'
import type { Peer } from '../peer/peer.ts'
import { formatMetadataRequest, METADATA_PIECE_BYTES, type MetadataMessage } from '../wire/extensions.ts'

interface Attempt {
  readonly peer: Peer
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
 * Fetches the info dictionary from peers (BEP 9): up to three at once, each sending the whole of it, so that a wrong
 * one has a single sender. Uses at most 4 MiB of memory per peer.
 *
 * Invariant: a peer is tried once, or again after a time-out.
 */
export class MetadataFetch {
  readonly #infohash: Uint8Array
  readonly #clock: Clock
  readonly #attempts = new Map<number, Attempt>()
  readonly #useless = new Set<number>()
  readonly #done: (infoBytes: Uint8Array) => void
  readonly #emit: Emit<'bad-data'>
  #finished = false

  /** `infohash`: 32 bytes. `done`: called once, with the bytes that match the infohash. */
  constructor(infohash: Uint8Array, clock: Clock, done: (infoBytes: Uint8Array) => void, emit: Emit<'bad-data'>) {
    this.#infohash = infohash
    this.#clock = clock
    this.#done = done
    this.#emit = emit
  }

  /** A peer announced that it has the metadata. */
  offer(peer: Peer): void {
    if (
      this.#finished ||
      this.#attempts.size >= MAX_ATTEMPTS ||
      this.#attempts.has(peer.id) ||
      this.#useless.has(peer.id)
    )
      return
    const totalBytes = peer.extended?.metadataBytes
    if (totalBytes === undefined || totalBytes === 0 || !peer.extended!.ids.get('ut_metadata')) return
    const count = Math.ceil(totalBytes / METADATA_PIECE_BYTES)
    const attempt: Attempt = {
      peer,
      totalBytes,
      pieces: new Array<Uint8Array | undefined>(count).fill(undefined),
      missing: count,
      requested: 0,
      lastAt: this.#clock.monotonic()
    }
    this.#attempts.set(peer.id, attempt)
    while (attempt.requested < Math.min(count, IN_FLIGHT)) this.#ask(attempt)
  }

  #ask(attempt: Attempt): void {
    if (attempt.requested >= attempt.pieces.length) return
    attempt.peer.sendExtension('ut_metadata', formatMetadataRequest(attempt.requested))
    attempt.requested += 1
  }

  message(peer: Peer, message: MetadataMessage): void {
    const attempt = this.#attempts.get(peer.id)
    if (attempt === undefined || this.#finished || message.kind === 'request') return
    if (message.kind !== 'data') return this.#giveUp(peer)
    const expected =
      message.piece === attempt.pieces.length - 1
        ? attempt.totalBytes - message.piece * METADATA_PIECE_BYTES
        : METADATA_PIECE_BYTES
    if (message.piece >= attempt.requested || message.bytes.length !== expected) return this.#giveUp(peer)
    if (attempt.pieces[message.piece] !== undefined) return
    attempt.pieces[message.piece] = new Uint8Array(message.bytes)
    attempt.missing -= 1
    attempt.lastAt = this.#clock.monotonic()
    this.#ask(attempt)
    if (attempt.missing > 0) return
    const info = Buffer.concat(attempt.pieces as Uint8Array[])
    this.#attempts.delete(peer.id)
    this.#useless.add(peer.id)
    if (!equalBytes(sha256(info), this.#infohash))
      return this.#emit({ kind: 'bad-data', sender: peer.id, reason: 'wrong metadata', piece: undefined })
    this.#finished = true
    this.#attempts.clear()
    this.#done(new Uint8Array(info))
  }

  #giveUp(peer: Peer): void {
    this.#attempts.delete(peer.id)
    this.#useless.add(peer.id)
  }

  gone(peer: Peer): void {
    this.#attempts.delete(peer.id)
    this.#useless.delete(peer.id)
  }

  /** Gives up on peers that do not answer, and tries others. */
  tick(peers: Iterable<Peer>, nowMs: number): void {
    for (const attempt of this.#attempts.values()) if (nowMs - attempt.lastAt > TIMEOUT_MS) this.#giveUp(attempt.peer)
    for (const peer of peers) this.offer(peer)
  }

  checkInvariants(): void {
    if (this.#attempts.size > MAX_ATTEMPTS) throw new Error('too many attempts')
    for (const attempt of this.#attempts.values()) {
      if (attempt.pieces.filter((piece) => piece === undefined).length !== attempt.missing)
        throw new Error('pieces are miscounted')
    }
  }
}
