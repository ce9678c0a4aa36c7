/** Work on the same key runs one after the other, in the order asked for. Invariant: a key is held while its last work is not over. */
export class Turns<K> {
  readonly #last = new Map<K, Promise<void>>()

  /** @throws the signal's reason when it aborts before the turn comes; what `work` throws */
  async run<T>(key: K, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const done = Promise.withResolvers<void>()
    const last = before.then(() => done.promise)
    this.#last.set(key, last)
    try {
      await abortable(before, signal)
      return await work()
    } finally {
      done.resolve()
      if (this.#last.get(key) === last) void last.then(() => this.#last.get(key) === last && this.#last.delete(key))
    }
  }
}

function abortable(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
    void wait.then(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
  })
}
