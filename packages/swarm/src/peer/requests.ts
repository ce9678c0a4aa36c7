import { BLOCK_BYTES } from '@svc/metainfo'
import type { BlockRun, PieceBuffer } from '../piece/piece-buffer.ts'

export interface PendingRequest {
  readonly piece: number
  readonly begin: number
  readonly length: number
  readonly run: BlockRun
  readonly buffer: PieceBuffer
  readonly sentAt: number
  /** Bytes outstanding at the peer when this was sent, including its own. */
  readonly aheadBytes: number
  /** Cancelled or reassigned; an answer is counted and dropped, unless it is still useful. */
  void: boolean
}

/** A request for blocks, `outstandingBytes` after others at the same peer. */
export function pendingRequest(
  { buffer, run }: Pick<PendingRequest, 'buffer' | 'run'>,
  nowMs: number,
  outstandingBytes = 0
): PendingRequest {
  const length = buffer.runBytes(run)
  return {
    piece: buffer.piece,
    begin: run.first * BLOCK_BYTES,
    length,
    run,
    buffer,
    sentAt: nowMs,
    aheadBytes: outstandingBytes + length,
    void: false
  }
}

const MIN_BLOCKS = 16
/** Limit in flight per peer, however fast it is, since it takes receive memory. Allows 160 MB/s at 100 ms. */
const MAX_OUTSTANDING_BYTES = 16 * 1024 * 1024
const PIPELINE_SECONDS = 2.5
/** A request is at most this long while the window is small: others do not wait long behind it, and a refusal costs little. */
const SHORT_REQUEST_BYTES = 131_072
/** How much of a window is free before it is filled again: an eighth, and at most these. */
const REFILL_BYTES = 1024 * 1024
const REFILL_REQUESTS = 64
const keyOf = (piece: number, begin: number): number => piece * 4096 + begin / BLOCK_BYTES

/** In a fleet: how much longer than the fastest answer one may take before fewer bytes are requested. */
const QUEUE_MS = 250
/** The fastest answer counts for once to twice this long: one lucky answer from a cache is no measure for ever. */
const FASTEST_MS = 15_000
/** In a fleet: the fewest blocks that all peers together are asked for, and the fewest for each. */
const FLEET_BLOCKS = 32
const MIN_FLEET_BLOCKS = 2

/**
 * Our unanswered requests to one peer, and how many there may be. The window starts at 16 blocks, grows by one per
 * received block until the rate is known, then follows the rate; the peer's `reqq` limits it.
 *
 * In a fleet all peers ask each other, and answers to early requests fill the senders' sockets, ahead of later answers and
 * of announcements. There the window shrinks as soon as answers take longer than the fastest one of the last 15 to
 * 30 s; never below 16 blocks while one or two peers are asked, nor below two blocks while many are.
 *
 * Invariant: `outstandingBytes` is the sum of all requests that are not void.
 */
export class PendingRequests {
  readonly #byKey = new Map<number, PendingRequest>()
  #outstandingBytes = 0
  #live = 0
  #windowBytes = MIN_BLOCKS * BLOCK_BYTES
  readonly #fleet: boolean
  /** The fastest answer of the current interval of `FASTEST_MS`, and of the one before. */
  #fastestMs = Number.POSITIVE_INFINITY
  #fastestBeforeMs = Number.POSITIVE_INFINITY
  #fastestSince = Number.NEGATIVE_INFINITY
  /** Number of peers that are asked for blocks at the same time, this one included. */
  sharers = 1
  /** Limit of requests that the peer queues (BEP 10 `reqq`). */
  queueLimit = 250

  /** @param fleet the peer is one of a fleet of our own */
  constructor(fleet = false) {
    this.#fleet = fleet
  }

  get outstandingBytes(): number {
    return this.#outstandingBytes
  }

  /** Number of requests that are not void; the peer may still answer void ones. */
  get live(): number {
    return this.#live
  }

  roomBytes(): number {
    if (this.#byKey.size >= this.queueLimit) return 0
    return Math.max(0, this.#windowBytes - this.#outstandingBytes)
  }

  /** The most bytes of one request: a quarter of a large window, so that several requests are always on their way. */
  get requestBytes(): number {
    return Math.max(SHORT_REQUEST_BYTES, this.#windowBytes / 4)
  }

  /** True once several requests fit, which travel together; at the latest when an eighth has arrived, so that no peer is idle. */
  get wantsMore(): boolean {
    const freeRequests = this.queueLimit - this.#byKey.size
    if (freeRequests < Math.min(REFILL_REQUESTS, this.queueLimit / 8)) return false
    return this.#windowBytes - this.#outstandingBytes >= Math.min(REFILL_BYTES, this.#windowBytes / 8)
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

  remove(request: PendingRequest): void {
    if (!this.#byKey.delete(keyOf(request.piece, request.begin))) return
    this.#subtract(request)
  }

  /** The answer is no longer needed, but the peer may still send it. */
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

  /** A block arrived `tookMs` after its request: widens the window while the peer keeps up. */
  grow(bytes: number, tookMs: number, nowMs: number): void {
    if (this.#fleet && tookMs > this.#fastest(tookMs, nowMs) + QUEUE_MS)
      // a window that was answered too late is halved
      this.#windowBytes = Math.max(this.#leastBytes(), this.#windowBytes - bytes / 2)
    else this.#windowBytes = Math.min(MAX_OUTSTANDING_BYTES, this.#windowBytes + bytes)
  }

  /** The fastest answer of the last 15 to 30 s, this one included. */
  #fastest(tookMs: number, nowMs: number): number {
    const elapsedMs = nowMs - this.#fastestSince
    if (elapsedMs >= FASTEST_MS) {
      this.#fastestBeforeMs = elapsedMs < 2 * FASTEST_MS ? this.#fastestMs : Number.POSITIVE_INFINITY
      this.#fastestMs = Number.POSITIVE_INFINITY
      this.#fastestSince = nowMs
    }
    this.#fastestMs = Math.min(this.#fastestMs, tookMs)
    return Math.min(this.#fastestMs, this.#fastestBeforeMs)
  }

  /** A floor for each peer alone would queue as many floors at every sender. */
  #leastBytes(): number {
    const blocks = Math.max(MIN_FLEET_BLOCKS, Math.ceil(FLEET_BLOCKS / this.sharers))
    return Math.min(MIN_BLOCKS, blocks) * BLOCK_BYTES
  }

  /** Called once a second: adapts the window to the rate. */
  adapt(bytesPerSecond: number): void {
    const wanted = Math.max(MIN_BLOCKS * BLOCK_BYTES, bytesPerSecond * PIPELINE_SECONDS)
    const ceiling = Math.min(MAX_OUTSTANDING_BYTES, wanted)
    this.#windowBytes = this.#fleet ? Math.min(this.#windowBytes, ceiling) : ceiling
  }

  /** The peer does not answer: allows one block at a time from now on. */
  collapse(): void {
    this.#windowBytes = BLOCK_BYTES
  }

  /** Forgets void requests sent before `sinceMs`, which the peer neither answered nor rejected. */
  prune(sinceMs: number): void {
    for (const [key, request] of this.#byKey) if (request.void && request.sentAt < sinceMs) this.#byKey.delete(key)
  }

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
}
