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

/** A sender that waits for the upload limit. It sends one block, and returns false when there is nothing more to send now. */
export interface LimitedSender {
  sendOne(): boolean
}

/**
 * The upload limit of an engine. Lets senders send one block at a time, first come first served, as the limit allows, so that
 * all waiting senders get equal shares.
 *
 * Invariant: a sender is queued at most once; a timer runs only while a sender waits.
 */
export class UploadLimiter {
  readonly #limit: UploadLimit
  readonly #clock: Clock
  readonly #waiting = new Set<LimitedSender>()
  #timer: Timer | undefined

  constructor(limit: UploadLimit, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /** False: nobody needs to wait. */
  get limited(): boolean {
    return this.#limit.limited
  }

  spend(bytes: number): void {
    this.#limit.spend(bytes)
  }

  wait(sender: LimitedSender): void {
    this.#waiting.add(sender)
    this.#arm(1)
  }

  leave(sender: LimitedSender): void {
    this.#waiting.delete(sender)
    if (this.#waiting.size === 0) this.#disarm()
  }

  #arm(delayMs: number): void {
    this.#timer ??= this.#clock.after(
      delayMs,
      guarded(() => this.#run())
    )
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #run(): void {
    this.#timer = undefined
    for (const sender of this.#waiting) {
      if (!this.#limit.ready(this.#clock.monotonic())) break
      // a sender with more to send goes to the end, and the loop comes to it again.
      this.#waiting.delete(sender)
      if (this.#sendOne(sender)) this.#waiting.add(sender)
    }
    if (this.#waiting.size > 0) this.#arm(Math.max(5, Math.min(250, this.#limit.waitMs(this.#clock.monotonic()))))
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
}
