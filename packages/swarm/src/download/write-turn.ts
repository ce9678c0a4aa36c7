/** Size of the memory that threads share for a {@link WriteTurn}. */
export const WRITE_TURN_BYTES = 8
/** A disk that keeps one thread waiting for longer than this keeps no other one. */
const WAIT_MS = 20
/** Indexes of the shared words: whose turn it is, and how many have asked for one. */
const [HOLDER, ASKED] = [0, 1] as const
const FREE = 0

/**
 * Lets the threads that share its memory write one after the other. Linux lets only one writer into a file at a time, and the second
 * one turns in a loop until it is let in: time of a core that the event loop, or a hash, could have used.
 *
 * Nothing depends on it: who has waited for 20 ms for one other takes the turn over and writes as well, so that a slow disk keeps nobody
 * waiting, and a thread that was ended in its turn costs the others one wait. A turn that was taken over is no longer its holder's to
 * give: otherwise each of two threads that once wrote at the same time would go on to let the other in.
 */
export class WriteTurn {
  readonly #state: Int32Array

  /** `memory`: {@link WRITE_TURN_BYTES}, zeros at first. */
  constructor(memory: SharedArrayBuffer) {
    this.#state = new Int32Array(memory)
  }

  /** Runs `write` in this thread's turn, and returns or throws what it does. Blocks the thread. */
  run<Result>(write: () => Result): Result {
    const turn = this.#take()
    try {
      return write()
    } finally {
      this.#give(turn)
    }
  }

  /** @returns what HOLDER is meanwhile, other than in any turn that is still known. */
  #take(): number {
    const mine = (Atomics.add(this.#state, ASKED, 1) << 1) | 1
    let holder = FREE
    while ((holder = Atomics.compareExchange(this.#state, HOLDER, FREE, mine)) !== FREE)
      if (
        Atomics.wait(this.#state, HOLDER, holder, WAIT_MS) === 'timed-out' &&
        Atomics.compareExchange(this.#state, HOLDER, holder, mine) === holder
      )
        break
    return mine
  }

  #give(mine: number): void {
    if (Atomics.compareExchange(this.#state, HOLDER, mine, FREE) === mine) Atomics.notify(this.#state, HOLDER, 1)
  }
}
