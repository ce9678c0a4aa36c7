/** Size of the memory that threads share for a {@link WriteTurn}. */
export const WRITE_TURN_BYTES = 4
/** A disk that keeps one thread waiting for longer than this keeps no other one. */
const WAIT_MS = 20
const FREE = 0
const TAKEN = 1

/**
 * Lets the threads that share its memory write one after the other. Linux lets only one writer into a file at a time, and the second
 * one turns in a loop until it is let in: time of a core that the event loop, or a hash, could have used.
 *
 * Nothing depends on it: who has waited for 20 ms takes the turn over and writes as well, so that a slow disk keeps nobody waiting, and a
 * thread that was ended in its turn costs the others one wait.
 */
export class WriteTurn {
  readonly #state: Int32Array

  /** `memory`: {@link WRITE_TURN_BYTES}, zeros at first. */
  constructor(memory: SharedArrayBuffer) {
    this.#state = new Int32Array(memory)
  }

  /** Runs `write` in this thread's turn, and returns or throws what it does. Blocks the thread. */
  run<Result>(write: () => Result): Result {
    this.#take()
    try {
      return write()
    } finally {
      this.#give()
    }
  }

  #take(): void {
    while (Atomics.compareExchange(this.#state, 0, FREE, TAKEN) !== FREE)
      if (Atomics.wait(this.#state, 0, TAKEN, WAIT_MS) === 'timed-out') return
  }

  #give(): void {
    Atomics.store(this.#state, 0, FREE)
    Atomics.notify(this.#state, 0, 1)
  }
}
