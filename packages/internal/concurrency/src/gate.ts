/** Releases the place; further calls do nothing. */
export type Release = () => void

/** Makes the error that a wait rejects with when its signal is aborted; default: the signal's own reason. */
export type AbortErrorOf = (signal: AbortSignal) => unknown

const reasonOf: AbortErrorOf = (signal) => signal.reason

/**
 * Admits at most `width` holders at once. Waiters are served in order of arrival and can give up through their signal,
 * at the same cost however many wait.
 *
 * Invariant: there are waiters only while all places are taken.
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

  /** No holders and no waiters. */
  get idle(): boolean {
    return this.#held === 0 && this.#waiters.size === 0
  }

  /** Number of waiters. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Waits for a place. @throws the abort error, by default the signal's reason */
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

  /** Runs `work` while holding a place. @throws as {@link enter}; errors of `work` */
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
