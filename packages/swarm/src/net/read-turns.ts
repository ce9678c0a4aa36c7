/** What waits for a later turn of the event loop with bytes that it has read. */
export interface TurnReader {
  /** Works off a slice of what it holds. @returns whether something is left. */
  readHeld(): boolean
}

/**
 * Milliseconds of one turn of the event loop that may be spent on what peers send. A chunk of 64 KiB of blocks takes
 * some 50 µs, but thousands of small messages fit into one, and hundreds of peers may send at once.
 */
const TURN_MS = 2
/** Time is looked at after this many bytes, beside those of a block: some thousand of the smallest messages. */
export const SLICE_BYTES = 16_384

/**
 * Bounds the time that reading from peers takes in one turn of the event loop: what is over the bound is held, its
 * connection not read, and goes on in later turns, one slice of each connection after another. So a flood of small
 * messages, however many peers send it, delays everything else by some milliseconds.
 *
 * What is less than an eighth of the bound is carried over to the next turn instead: an immediate for each read is a share of its cost.
 *
 * Invariant: an immediate is scheduled exactly while more than that was spent, or somebody waits.
 */
export class ReadTurns {
  readonly #turnMs: number
  readonly #waiting = new Set<TurnReader>()
  #spentMs = 0
  #scheduled = false

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs
  }

  /** Nothing more is read in this turn. */
  get isOver(): boolean {
    return this.#spentMs >= this.#turnMs
  }

  /** Readers that wait. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs `work` and charges its time to this turn. */
  run<Result>(work: () => Result): Result {
    const begun = performance.now()
    try {
      return work()
    } finally {
      this.charge(begun)
    }
  }

  /** Charges the time since `sinceMs` to this turn. @returns the time now */
  charge(sinceMs: number): number {
    const nowMs = performance.now()
    this.#spentMs += nowMs - sinceMs
    if (this.#spentMs > this.#turnMs / 8) this.#schedule()
    return nowMs
  }

  /** The reader goes on in a later turn. */
  wait(reader: TurnReader): void {
    this.#waiting.add(reader)
    this.#schedule()
  }

  leave(reader: TurnReader): void {
    this.#waiting.delete(reader)
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#scheduled = false
    this.#spentMs = 0
    // Those that come back to the queue are behind the others, for the turn after this one.
    for (const reader of [...this.#waiting]) {
      if (this.isOver) break
      if (!this.#waiting.delete(reader)) continue
      if (this.run(() => reader.readHeld())) this.#waiting.add(reader)
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}

/** Of this thread: all engines share its event loop. */
export const readTurns = new ReadTurns()
