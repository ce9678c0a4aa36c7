import { reportDefect } from '../net/guarded.ts'

/** Somebody who sends as much as fits into one turn of the event loop. */
export interface TurnTaker {
  takeTurn(): void
}

/**
 * One round of all senders in each turn of the event loop. Whoever got nothing in one comes first in the next, so that
 * a few fast peers cannot keep the time for reads from the others.
 */
export class SendTurns {
  readonly #missed = new Set<TurnTaker>()
  readonly #next = new Set<TurnTaker>()
  #scheduled = false

  /** `missed`: it could send nothing in this turn. */
  soon(taker: TurnTaker, missed = false): void {
    if (missed) {
      this.#next.delete(taker)
      this.#missed.add(taker)
    } else if (!this.#missed.has(taker)) this.#next.add(taker)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#run())
  }

  leave(taker: TurnTaker): void {
    this.#missed.delete(taker)
    this.#next.delete(taker)
  }

  #run(): void {
    this.#scheduled = false
    const takers = [...this.#missed, ...this.#next]
    this.#missed.clear()
    this.#next.clear()
    for (const taker of takers) {
      try {
        taker.takeTurn()
      } catch (error) {
        reportDefect(error)
      }
    }
  }
}
