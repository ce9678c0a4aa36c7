import { BLOCK_BYTES } from '@svc/metainfo'
import type { BlockRun, PieceBuffer } from '../piece/piece-buffer.ts'

/** A request of ours that a peer has not answered. */
export interface PendingRequest {
  readonly piece: number
  readonly begin: number
  readonly length: number
  readonly run: BlockRun
  readonly buffer: PieceBuffer
  readonly sentAt: number
  /** Bytes outstanding at the peer when this was sent, itself included. */
  readonly aheadBytes: number
  /** Cancelled or given to others; what still arrives is counted and dropped unless it is of use. */
  void: boolean
}

const MIN_BLOCKS = 16
/** Never more than this in flight for one peer, however fast: it is memory that is held, and 160 MB/s at 100 ms. */
const MAX_OUTSTANDING_BYTES = 16 * 1024 * 1024
const PIPELINE_SECONDS = 2.5
const keyOf = (piece: number, begin: number): number => piece * 4096 + begin / BLOCK_BYTES

/**
 * What is asked of one peer and not answered, and how much may be. Starts at 16 blocks, grows by one for each block that
 * comes while the rate is not known yet, then follows the rate; bounded by the peer's `reqq`.
 * Invariant: `outstandingBytes` is the sum over all requests that are not void.
 */
export class PendingRequests {
  readonly #byKey = new Map<number, PendingRequest>()
  #outstandingBytes = 0
  #live = 0
  #windowBytes = MIN_BLOCKS * BLOCK_BYTES
  /** Requests that the peer queues (BEP 10 `reqq`). */
  queueLimit = 250

  get outstandingBytes(): number {
    return this.#outstandingBytes
  }

  /** Requests that count; voided ones may still be at the peer. */
  get live(): number {
    return this.#live
  }

  /** Bytes that may be asked for now. */
  roomBytes(): number {
    if (this.#byKey.size >= this.queueLimit) return 0
    return Math.max(0, this.#windowBytes - this.#outstandingBytes)
  }

  add(request: PendingRequest): void {
    this.#byKey.set(keyOf(request.piece, request.begin), request)
    this.#outstandingBytes += request.length
    this.#live += 1
  }

  find(piece: number, begin: number): PendingRequest | undefined {
    if (begin % BLOCK_BYTES !== 0) return undefined
    return this.#byKey.get(keyOf(piece, begin))
  }

  /** The request was answered or rejected. */
  remove(request: PendingRequest): void {
    if (!this.#byKey.delete(keyOf(request.piece, request.begin))) return
    this.#subtract(request)
  }

  /** The answer is not wanted any more, but the peer may send it. */
  invalidate(request: PendingRequest): void {
    if (request.void) return
    this.#subtract(request)
    request.void = true
  }

  #subtract(request: PendingRequest): void {
    if (request.void) return
    this.#outstandingBytes -= request.length
    this.#live -= 1
  }

  /** A block arrived: widens the window while the peer keeps up. */
  grow(bytes: number): void {
    this.#windowBytes = Math.min(MAX_OUTSTANDING_BYTES, this.#windowBytes + bytes)
  }

  /** Once a second: the window follows the rate. */
  adapt(bytesPerSecond: number): void {
    const wanted = Math.max(MIN_BLOCKS * BLOCK_BYTES, bytesPerSecond * PIPELINE_SECONDS)
    this.#windowBytes = Math.min(MAX_OUTSTANDING_BYTES, wanted)
  }

  /** The peer does not answer: one block at a time from now on. */
  collapse(): void {
    this.#windowBytes = BLOCK_BYTES
  }

  /** Forgets voided requests sent before `sinceMs`: the peer never answered or rejected them. */
  prune(sinceMs: number): void {
    for (const [key, request] of this.#byKey) if (request.void && request.sentAt < sinceMs) this.#byKey.delete(key)
  }

  /** The oldest request that counts. */
  oldest(): PendingRequest | undefined {
    if (this.#live === 0) return undefined
    for (const request of this.#byKey.values()) if (!request.void) return request
    return undefined
  }

  all(): IterableIterator<PendingRequest> {
    return this.#byKey.values()
  }

  clear(): void {
    this.#byKey.clear()
    this.#outstandingBytes = 0
    this.#live = 0
  }

  checkInvariants(): void {
    let bytes = 0
    let live = 0
    for (const request of this.#byKey.values()) {
      if (request.void) continue
      bytes += request.length
      live += 1
    }
    if (bytes !== this.#outstandingBytes || live !== this.#live) throw new Error('outstanding requests are miscounted')
  }
}
