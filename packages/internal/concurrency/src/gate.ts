/** Gives a place back; calling it again does nothing. */
export type Release = () => void

/** What a wait rejects with when its signal fires; the default is the signal's own reason. */
export type AbortErrorOf = (signal: AbortSignal) => unknown

const reasonOf: AbortErrorOf = (signal) => signal.reason

/**
 * At most `width` holders at once; waiters are served in order of arrival and may give up through their signal, which costs the
 * same however many wait.
 * Invariant: somebody waits only while all places are taken.
 */
export class Gate {
  readonly #width: number
  readonly #abortErrorOf: AbortErrorOf
  #held = 0
  readonly #waiters = new Set<(release: Release) => void>()

  constructor(width: number, abortErrorOf: AbortErrorOf = reasonOf) {
    this.#width = width
    this.#abortErrorOf = abortErrorOf
  }

  /** Nobody is inside, nobody waits. */
  get idle(): boolean {
    return this.#held === 0 && this.#waiters.size === 0
  }

  /** How many wait for a place. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Waits for a place. @throws what the abort error is, by default the signal's reason */
  enter(signal?: AbortSignal): Promise<Release> {
    if (signal?.aborted) return Promise.reject(this.#abortErrorOf(signal))
    if (this.#held < this.#width) return Promise.resolve(this.#take())
    return new Promise((resolve, reject) => {
      const grant = (release: Release): void => {
        signal?.removeEventListener('abort', giveUp)
        resolve(release)
      }
      const giveUp = (): void => {
        this.#waiters.delete(grant)
        reject(this.#abortErrorOf(signal!))
      }
      this.#waiters.add(grant)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** Holds a place for as long as `work` runs. @throws as {@link enter}; what `work` throws */
  async run<T>(signal: AbortSignal | undefined, work: () => T | Promise<T>): Promise<T> {
    const release = await this.enter(signal)
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
      const [next] = this.#waiters
      if (next === undefined) return
      this.#waiters.delete(next)
      next(this.#take())
    }
  }
}
