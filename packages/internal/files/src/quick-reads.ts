/** A read that takes longer was not served from memory: the disk was asked, or another program was let in. */
const SLOW_MS = 2
/** After the first slow read; doubles with each further one. */
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 10_000
/** So much of one turn of the event loop may go into reads and what is done with them. */
const TURN_MS = 2

/** How many ask for it, see {@link QuickReads.holdOff}. */
let holders = 0

/**
 * Decides which reads are made on the event loop's thread. From the page cache a small read takes microseconds, and handing it to the thread
 * pool ten times as much; from a cold disk it takes milliseconds in which nobody else is answered. So reads are made here until one
 * was slow. Then they go to the pool for a while, which grows as long as every first try afterwards is slow again. Nobody waits longer
 * than one such read, and after 2 ms in one turn of the loop others come first.
 * Nothing bounds that one read where a file system may stop answering: see {@link QuickReads.holdOff}.
 */
export class QuickReads {
  #pausedUntil = 0
  #pauseMs = FIRST_PAUSE_MS
  #turnEnd = Number.POSITIVE_INFINITY
  #nextTurn: Promise<void> | undefined

  /** All reads of this process go through the thread pool until the function that this gives is called. */
  static holdOff(): () => void {
    let held = 1
    holders++
    return () => {
      holders -= held
      held = 0
    }
  }

  /** `here` on this thread, or `pooled`, which must do the same through the thread pool. */
  async run<T>(here: () => T, pooled: () => Promise<T>): Promise<T> {
    if (holders > 0) return pooled()
    this.#nextTurn ??= this.#begin()
    while (performance.now() > this.#turnEnd) await (this.#nextTurn ??= this.#begin())
    return this.allowed ? this.timed(here) : pooled()
  }

  /** Whether the next read is made on this thread. */
  get allowed(): boolean {
    if (holders > 0) return false
    return this.#pausedUntil === 0 || performance.now() >= this.#pausedUntil
  }

  /** Makes a read on this thread, and notes how long it took. */
  timed<T>(here: () => T): T {
    const begun = performance.now()
    try {
      return here()
    } finally {
      const now = performance.now()
      if (now - begun > SLOW_MS) {
        this.#pausedUntil = now + this.#pauseMs
        this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS)
      } else if (this.#pausedUntil !== 0) {
        this.#pausedUntil = 0
        this.#pauseMs = FIRST_PAUSE_MS
      }
    }
  }

  #begin(): Promise<void> {
    this.#turnEnd = performance.now() + TURN_MS
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#nextTurn = undefined
        this.#turnEnd = Number.POSITIVE_INFINITY
        resolve()
      })
    })
  }
}
