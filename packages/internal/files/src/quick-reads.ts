import { type LoopBudget, loopBudget, processWide } from '@svc/internal-concurrency'

/** A read that takes longer was not served from memory: it went to the disk, or another program ran in between. */
const SLOW_MS = 2
/** A longer one counts as slow even if nothing came from a disk: file systems of programs tell nobody what they read. */
const STALLED_MS = 20
/** After the first slow read; doubles with each further one. */
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 10_000

/** Active callers of {@link QuickReads.holdOff}. */
const holders = processWide('quick-reads', () => ({ count: 0 }))

/**
 * Decides which reads run on the event loop's thread. From the page cache a small read takes microseconds, and passing
 * it to the thread pool ten times as long; from a cold disk it takes milliseconds, in which no other request is served.
 * So reads run here until one is slow. Then they go to the pool for a while, which doubles as long as the first read
 * afterwards is slow again. Other requests wait for at most one such read, and come first when the time of a turn is used up
 * ({@link LoopBudget}). On a file system that may stop responding even one read is too much: see {@link QuickReads.holdOff}.
 */
export class QuickReads {
  #pausedUntil = 0
  #pauseMs = FIRST_PAUSE_MS
  #blocksRead = process.resourceUsage().fsRead
  readonly #budget: LoopBudget

  constructor(budget = loopBudget) {
    this.#budget = budget
  }

  /** Sends all reads of this process through the thread pool until the returned function is called. */
  static holdOff(): () => void {
    let held = 1
    holders.count++
    return () => {
      holders.count -= held
      held = 0
    }
  }

  /** Runs `here` on this thread, or `pooled`, which must do the same through the thread pool. */
  async run<T>(here: () => T, pooled: () => Promise<T>): Promise<T> {
    while (this.allowed && this.#budget.isOver('file-reads')) await this.#budget.next('file-reads')
    return this.allowed ? this.timed(here) : pooled()
  }

  /**
   * Runs `here` if it may run at once; undefined: use {@link QuickReads.run}, which waits for its turn. For so many reads that
   * promises cost as much as they do.
   */
  tryNow<T extends NonNullable<unknown>>(here: () => T): T | undefined {
    return !this.allowed || this.#budget.isOver('file-reads') ? undefined : this.timed(here)
  }

  get allowed(): boolean {
    if (holders.count > 0) return false
    return this.#pausedUntil === 0 || performance.now() >= this.#pausedUntil
  }

  /** Runs a read on this thread, and measures it. */
  timed<T>(here: () => T): T {
    const begun = performance.now()
    try {
      return here()
    } finally {
      const now = performance.now()
      if (now - begun > SLOW_MS && (this.#cameFromDisk() || now - begun > STALLED_MS)) {
        this.#pausedUntil = now + this.#pauseMs
        this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS)
      } else if (this.#pausedUntil !== 0) {
        this.#pausedUntil = 0
        this.#pauseMs = FIRST_PAUSE_MS
      }
    }
  }

  /**
   * Whether this process has read from a disk since the last slow read. If not, another program had the core: between
   * busy threads that happens every few milliseconds, and the thread pool would only cost more.
   */
  #cameFromDisk(): boolean {
    const before = this.#blocksRead
    this.#blocksRead = process.resourceUsage().fsRead
    return this.#blocksRead !== before
  }
}
