/** A fair bound on how many things run at once. */
export class Slots {
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Runs `work` when a slot is free; first come, first served. Rejects with the signal's reason while waiting. */
  async run<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#take(signal)
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#free++
    }
  }

  #take(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.#free > 0) {
      this.#free--
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const grant = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(grant), 1)
        reject(signal?.reason)
      }
      this.#queue.push(grant)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}
