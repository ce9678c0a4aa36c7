/** Milliseconds of one turn of the event loop for all long work together. */
const TURN_MS = 2

/** The kinds of long work, as metrics name them. */
const LOOP_USERS = [
  'blobs',
  'file-reads',
  'hash-requests',
  'inspections',
  'lists',
  'peer-messages',
  'peer-requests',
  'pipelined',
  'seals',
  'webseeds'
] as const
type LoopUser = (typeof LOOP_USERS)[number]

/**
 * Lets messages, timers and sockets be handled in the middle of long work. Unlike a resolved promise this goes through
 * the event loop.
 */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Resolves when promises that are due have run, within the same turn of the event loop. */
const settled = (): Promise<void> => new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)))

/**
 * Bounds the time of all long work together in one turn of the event loop: a list of thousands of models, a flood of small messages,
 * uploads, reads from the page cache. The first to ask in a turn begins its time. Work that asks after that time waits for a later
 * turn, in order of arrival; requests, timers and everything else come in between. Ask before each step; a step should be far shorter
 * than a turn.
 *
 * Invariant: the end of a turn is scheduled while the turn has begun, and while somebody waits.
 */
export class LoopBudget {
  readonly #turnMs: number
  readonly #waiting = new Map<() => void, LoopUser>()
  readonly #usedUp = new Map<LoopUser, number>(LOOP_USERS.map((user) => [user, 0]))
  /** When the time of this turn is used up; undefined: nobody has asked yet. */
  #endMs: number | undefined
  /** The user that was let through last; undefined: the time is known to be used up. */
  #last: LoopUser | undefined
  #scheduled = false

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs
  }

  /** Whether the time of this turn is used up: then wait with {@link next} or {@link later}. */
  isOver(user: LoopUser): boolean {
    const nowMs = performance.now()
    if (this.#endMs === undefined) {
      this.#endMs = nowMs + this.#turnMs
      this.#schedule()
    } else if (nowMs >= this.#endMs) {
      if (this.#last !== undefined) this.#usedUp.set(this.#last, this.#usedUp.get(this.#last)! + 1)
      this.#last = undefined
      return true
    }
    this.#last = user
    return false
  }

  /** How many wait for a later turn. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** How often each kind of work has used up a turn. */
  get usedUp(): ReadonlyMap<LoopUser, number> {
    return this.#usedUp
  }

  /** Runs `task` once in a later turn, after those that wait already. Its errors are uncaught. */
  later(user: LoopUser, task: () => void): void {
    this.#waiting.set(task, user)
    this.#schedule()
  }

  /** Takes a task back. */
  leave(task: () => void): void {
    this.#waiting.delete(task)
  }

  /** Resolves in a later turn, when those that waited before had theirs. */
  next(user: LoopUser): Promise<void> {
    return new Promise((resolve) => this.later(user, resolve))
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => void this.#endTurn())
  }

  async #endTurn(): Promise<void> {
    this.#endMs = undefined
    // those that wait again meanwhile are behind the others, for the turn after this one.
    for (const [task, user] of [...this.#waiting]) {
      if (this.isOver(user)) break
      if (!this.#waiting.delete(task)) continue
      try {
        task()
      } catch (error) {
        setImmediate(() => {
          throw error
        })
      }
      await settled()
    }
    this.#scheduled = false
    if (this.#waiting.size > 0 || this.#endMs !== undefined) this.#schedule()
  }
}

/** The budget of this thread: all of its work shares its event loop. */
export const loopBudget = processWide('loop-budget', () => new LoopBudget())

/**
 * A value that the process has once. This package is bundled into each of its users, so a value of its modules would exist once for
 * each of them.
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const values = globalThis as unknown as Record<symbol, T | undefined>
  return (values[Symbol.for(`svc.${name}`)] ??= make())
}
