import { reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { type LimitedSender, UploadLimiter } from './limiter.ts'
import type { TokenBucket } from './token-bucket.ts'

/** Makes the message of one answer (a refusal included); called when it may go out, not before. Does not reject. */
export type MakeReply = () => Uint8Array | Promise<Uint8Array>

/** Answers that one peer may wait for; who asks for more is refused at once. */
const MAX_WAITING = 64
/** A peer that leaves this much unread is refused more. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024

/**
 * Answers to one peer's hash and metadata requests. They are small to ask for and large to give, so they wait for the upload
 * limit as blocks do, and are made one at a time: a peer holds memory for one answer, and one place in any line behind.
 * Invariant: it waits at the limiter, or makes an answer, or is empty; never two of these.
 */
export class ReplyQueue implements LimitedSender {
  readonly buckets: readonly TokenBucket[]
  readonly #peer: Peer
  readonly #limiter: UploadLimiter
  readonly #waiting: MakeReply[] = []
  #making = false
  #closed = false

  constructor(peer: Peer, limiter: UploadLimiter, buckets: readonly TokenBucket[]) {
    this.#peer = peer
    this.#limiter = limiter
    this.buckets = buckets
  }

  /** False: too many wait already, or the peer does not read. */
  add(make: MakeReply): boolean {
    if (this.#waiting.length >= MAX_WAITING || this.#peer.transport.bufferedBytes > MAX_UNREAD_BYTES) return false
    this.#waiting.push(make)
    if (this.#waiting.length === 1 && !this.#making) this.#next()
    return true
  }

  /** Sends at once what is too small to wait, e.g. a reject; it counts towards the limit all the same. */
  sendNow(message: Uint8Array): void {
    UploadLimiter.spend(this, message.length)
    this.#peer.send(message)
  }

  /** For the limiter. */
  sendOne(): boolean {
    const make = this.#waiting.shift()
    if (make !== undefined && !this.#closed) this.#make(make).catch(reportDefect)
    return false
  }

  async #make(make: MakeReply): Promise<void> {
    this.#making = true
    const message = await make()
    this.#making = false
    if (this.#closed || this.#peer.closed) return
    this.sendNow(message)
    if (this.#waiting.length > 0) this.#next()
  }

  #next(): void {
    if (UploadLimiter.limited(this)) this.#limiter.wait(this)
    else this.sendOne()
  }

  close(): void {
    this.#closed = true
    this.#waiting.length = 0
    this.#limiter.leave(this)
  }
}
