import { type AbortErrorOf, Gate, type Release } from './gate.ts'

/** One fair lock per key, compared as in a Map. Keys without holders and waiters use no memory. */
export class KeyedLock<Key = string> {
  readonly #gates = new Map<Key, Gate>()
  readonly #abortErrorOf: AbortErrorOf | undefined

  constructor(abortErrorOf?: AbortErrorOf) {
    this.#abortErrorOf = abortErrorOf
  }

  /** Waits until nobody else holds the key. @throws the abort error, by default the signal's reason */
  async acquire(key: Key, signal?: AbortSignal): Promise<Release> {
    let gate = this.#gates.get(key)
    if (gate === undefined) this.#gates.set(key, (gate = new Gate(1, this.#abortErrorOf)))
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

  /** Runs `work` while holding the key. @throws as {@link acquire}; errors of `work` */
  async run<T>(key: Key, signal: AbortSignal | undefined, work: () => T | Promise<T>): Promise<T> {
    const release = await this.acquire(key, signal)
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Nobody holds the key or waits for it. */
  isFree(key: Key): boolean {
    return !this.#gates.has(key)
  }
}
