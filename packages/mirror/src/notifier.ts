import type { Clock } from '@svc/internal-clock'

/** Waiters also look without news: a blob can arrive without any. */
const LOOK_MS = 500

/** Wakes a waiter. A notification between {@link clear} and {@link next} is not lost. */
export class Notifier {
  readonly #clock: Clock
  #isThere = false
  #wake: () => void = () => undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  readonly tell = (): void => {
    this.#isThere = true
    this.#wake()
  }

  /** Call before checking the condition. */
  clear(): void {
    this.#isThere = false
  }

  /** Resolves at the next news, or when it is time to look again, after `timeoutMs` at the latest. */
  next(timeoutMs: number): Promise<void> {
    if (this.#isThere) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.#clock.after(Math.min(timeoutMs, LOOK_MS), resolve)
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}
