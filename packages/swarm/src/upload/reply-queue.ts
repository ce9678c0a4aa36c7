import type { Clock } from '@svc/internal-clock'
import { hostKey, type PerSecond } from '@svc/internal-net'
import { reportDefect } from '../net/guarded.ts'
import type { Peer } from '../peer/peer.ts'
import { protocolError } from '../peer/protocol-error.ts'
import type { LimitedSender, UploadLimiter } from './limiter.ts'

/** Builds one answer, or a rejection, when it may be sent and not before. Does not reject. */
export type MakeReply = () => QueuedReply | Promise<QueuedReply>

export interface QueuedReply {
  readonly message: Uint8Array
  readonly isReject: boolean
}

/** Limit of queued answers per peer; further requests are refused at once. */
const MAX_WAITING = 64
/** A peer with this many unread bytes has further requests refused. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024
export interface ReplyEnvironment {
  readonly clock: Clock
  readonly limiter: UploadLimiter
  /** How many rejections a second may be sent, by host. */
  readonly rejects: PerSecond
}

/**
 * Answers to one peer's hash and metadata requests. These are small to request and large to send, so they wait for the
 * upload limit like blocks, and are built one at a time: a peer takes memory for one answer, and one place in any later
 * queue.
 *
 * Invariant: it is either waiting at the limiter, or building an answer, or empty.
 */
export class ReplyQueue implements LimitedSender {
  readonly #peer: Peer
  readonly #env: ReplyEnvironment
  readonly #waiting: MakeReply[] = []
  #making = false
  #closed = false

  constructor(peer: Peer, env: ReplyEnvironment) {
    this.#peer = peer
    this.#env = env
  }

  /** False when too many are waiting already, or the peer does not read. */
  add(make: MakeReply): boolean {
    if (this.#waiting.length >= MAX_WAITING || this.#peer.transport.bufferedBytes > MAX_UNREAD_BYTES) return false
    this.#waiting.push(make)
    if (this.#waiting.length === 1 && !this.#making) this.#next()
    return true
  }

  /** Sends a rejection at once; it counts towards the limit nevertheless. Too many end the connection. */
  reject(message: Uint8Array): void {
    if (!this.#env.rejects.take(hostKey(this.#peer.remoteHost), this.#env.clock.monotonic()))
      return this.#peer.close(protocolError('flood', 'too many requests for hashes or metadata'))
    this.#send(message)
  }

  #send(message: Uint8Array): void {
    this.#env.limiter.spend(message.length)
    this.#peer.send(message)
  }

  sendOne(): boolean {
    const make = this.#waiting.shift()
    if (make !== undefined && !this.#closed) this.#make(make).catch(reportDefect)
    return false
  }

  async #make(make: MakeReply): Promise<void> {
    this.#making = true
    const { message, isReject } = await make()
    this.#making = false
    if (this.#closed || this.#peer.closed) return
    if (isReject) this.reject(message)
    else this.#send(message)
    if (this.#waiting.length > 0) this.#next()
  }

  #next(): void {
    if (this.#env.limiter.limited) this.#env.limiter.wait(this)
    else this.sendOne()
  }

  close(): void {
    this.#closed = true
    this.#waiting.length = 0
    this.#env.limiter.leave(this)
  }
}
