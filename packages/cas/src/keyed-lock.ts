import { abortError, throwIfAborted } from './errors.ts'

/** Gives a lock back; calling it again does nothing. */
export type Release = () => void

interface Waiter {
  grant(release: Release): void
}

/**
 * At most `width` holders at once; waiters are served in order of arrival and may give up through their signal.
 * Invariant: somebody waits only while all places are taken.
 */
export class Gate {
  readonly #width: number
  #held = 0
  readonly #waiters = new Set<Waiter>()

  constructor(width: number) {
    this.#width = width
  }

  get idle(): boolean {
    return this.#held === 0 && this.#waiters.size === 0
  }

  get waiting(): number {
    return this.#waiters.size
  }

  /** @throws CasError `E_ABORTED` */
  async enter(signal?: AbortSignal): Promise<Release> {
    throwIfAborted(signal)
    if (this.#held < this.#width) return this.#take()
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter)
        reject(abortError(signal))
      }
      const waiter: Waiter = {
        grant: (release) => {
          signal?.removeEventListener('abort', onAbort)
          resolve(release)
        }
      }
      this.#waiters.add(waiter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
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
      next.grant(this.#take())
    }
  }
}

/** One fair lock per key; keys that nobody holds cost nothing. */
export class KeyedLock {
  readonly #gates = new Map<string, Gate>()

  /** @throws CasError `E_ABORTED` */
  async acquire(key: string, signal?: AbortSignal): Promise<Release> {
    let gate = this.#gates.get(key)
    if (gate === undefined) this.#gates.set(key, (gate = new Gate(1)))
    const own = gate
    const forget = (): void => {
      if (own.idle && this.#gates.get(key) === own) this.#gates.delete(key)
    }
    try {
      const release = await own.enter(signal)
      return () => {
        release()
        forget()
      }
    } catch (error) {
      forget()
      throw error
    }
  }
}
