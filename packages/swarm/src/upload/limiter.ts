import type { Clock, Timer } from '@svc/internal-clock'
import { guarded, reportDefect } from '../net/guarded.ts'

/** A limit of bytes over time that several senders share. Times are those of the engine's clock. */
export interface UploadLimit {
  /** False: it lets everything through. */
  readonly limited: boolean
  /** Whether something may be sent now, of any length. */
  ready(nowMs: number): boolean
  /** Milliseconds until it may. */
  waitMs(nowMs: number): number
  /** Charges what is sent. */
  spend(bytes: number): void
}

/**
 * A sender that waits for the upload limit. `sendOne` sends one block, and returns false when there is nothing more to
 * send now.
 */
export interface LimitedSender {
  /** Outermost first: global, torrent, peer. */
  readonly buckets: readonly UploadLimit[]
  sendOne(): boolean
}

/**
 * Lets senders send one block at a time, first come first served, as the buckets allow, so that all waiting senders get
 * equal shares.
 *
 * Invariant: a sender is queued at most once; a timer runs only while a sender waits.
 */
export class UploadLimiter {
  readonly #clock: Clock
  readonly #waiting = new Set<LimitedSender>()
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  static ready(sender: LimitedSender, nowMs: number): boolean {
    for (const bucket of sender.buckets) if (!bucket.ready(nowMs)) return false
    return true
  }

  static limited(sender: LimitedSender): boolean {
    for (const bucket of sender.buckets) if (bucket.limited) return true
    return false
  }

  static spend(sender: Pick<LimitedSender, 'buckets'>, bytes: number): void {
    for (const bucket of sender.buckets) bucket.spend(bytes)
  }

  /** Appends a sender to the queue. */
  wait(sender: LimitedSender): void {
    this.#waiting.add(sender)
    this.#arm(1)
  }

  leave(sender: LimitedSender): void {
    this.#waiting.delete(sender)
    if (this.#waiting.size === 0) this.#disarm()
  }

  #arm(delayMs: number): void {
    if (this.#timer !== undefined || this.#waiting.size === 0) return
    const run = guarded(() => this.#run())
    this.#timer = this.#clock.after(delayMs, run)
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #run(): void {
    this.#timer = undefined
    let progress = true
    while (progress) {
      progress = false
      const now = this.#clock.monotonic()
      // One round: every sender sends one block and goes to the end of the queue.
      for (const sender of [...this.#waiting]) {
        if (!UploadLimiter.ready(sender, now)) continue
        this.#waiting.delete(sender)
        if (this.#sendOne(sender)) this.#waiting.add(sender)
        progress = true
      }
    }
    if (this.#waiting.size === 0) return
    const now = this.#clock.monotonic()
    let delay = 250
    for (const sender of this.#waiting) {
      let wait = 0
      for (const bucket of sender.buckets) wait = Math.max(wait, bucket.waitMs(now))
      delay = Math.min(delay, wait)
    }
    this.#arm(Math.max(5, delay))
  }

  /** A sender that throws loses its turn; the others are unaffected. */
  #sendOne(sender: LimitedSender): boolean {
    try {
      return sender.sendOne()
    } catch (error) {
      reportDefect(error)
      return false
    }
  }

  close(): void {
    this.#waiting.clear()
    this.#disarm()
  }

  checkInvariants(): void {
    if (this.#waiting.size === 0 && this.#timer !== undefined) throw new Error('a timer runs for nobody')
    if (this.#waiting.size > 0 && this.#timer === undefined) throw new Error('senders wait without a timer')
  }
}
