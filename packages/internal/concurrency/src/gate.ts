/** Releases the place; further calls do nothing. */
export type Release = () => void

/** Makes the error that a wait rejects with when its signal is aborted; default: the signal's own reason. */
export type AbortErrorOf = (signal: AbortSignal) => unknown

const reasonOf: AbortErrorOf = (signal) => signal.reason

/** The lowest rank goes first; undefined for a waiter that takes its turn after all others with a rank. Called whenever a place is free. */
export type Rank = () => number | undefined

/**
 * Admits at most `width` holders at once. Waiters are served in order of arrival, those with a {@link Rank} first. They can give up
 * through their signal, at the same cost however many wait.
 *
 * Invariant: there are waiters only while all places are taken.
 */
export class Gate {
  #width: number
  readonly #abortErrorOf: AbortErrorOf
  #held = 0
  readonly #waiters = new Map<(release: Release) => void, Rank | undefined>()
  #ranks = 0

  constructor(width: number, abortErrorOf: AbortErrorOf = reasonOf) {
    this.#width = width
    this.#abortErrorOf = abortErrorOf
  }

  get idle(): boolean {
    return this.#held === 0 && this.#waiters.size === 0
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /** Holders beyond a smaller width keep their places; waiters get those of a larger one at once. */
  resize(width: number): void {
    this.#width = width
    this.#admit()
  }

  /** Waits for a place. @throws the abort error, by default the signal's reason */
  enter(signal?: AbortSignal, rank?: Rank): Promise<Release> {
    if (signal?.aborted) return Promise.reject(this.#abortErrorOf(signal))
    if (this.#held < this.#width) return Promise.resolve(this.#take())
    return new Promise((resolve, reject) => {
      const grant = (release: Release): void => {
        signal?.removeEventListener('abort', giveUp)
        resolve(release)
      }
      const giveUp = (): void => {
        this.#leave(grant)
        reject(this.#abortErrorOf(signal!))
      }
      this.#waiters.set(grant, rank)
      if (rank !== undefined) this.#ranks++
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** Runs `work` while holding a place. @throws as {@link enter}; errors of `work` */
  async run<T>(signal: AbortSignal | undefined, work: () => T | Promise<T>, rank?: Rank): Promise<T> {
    const release = await this.enter(signal, rank)
    try {
      return await work()
    } finally {
      release()
    }
  }

  #take(): Release {
    this.#held++
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#held--
      this.#admit()
    }
  }

  #admit(): void {
    while (this.#held < this.#width) {
      const next = this.#next()
      if (next === undefined) return
      this.#leave(next)
      next(this.#take())
    }
  }

  #next(): ((release: Release) => void) | undefined {
    let [best] = this.#waiters.keys()
    if (this.#ranks === 0) return best
    let lowest = Infinity
    for (const [grant, rank] of this.#waiters) {
      const its = rank?.() ?? Infinity
      if (its >= lowest) continue
      lowest = its
      best = grant
    }
    return best
  }

  #leave(grant: (release: Release) => void): void {
    if (this.#waiters.get(grant) !== undefined) this.#ranks--
    this.#waiters.delete(grant)
  }
}
