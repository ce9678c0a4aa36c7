interface Queued<Item, Outcome> {
  readonly item: Item
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** Sends items to threads together. Each thread has at most one batch under way; what arrives in the meantime is the next one. */
export class Batch<Thread, Item, Outcome> {
  readonly #idle: Thread[]
  readonly #maxItems: number
  readonly #send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  readonly #queue: Queued<Item, Outcome>[] = []
  #scheduled = false

  /** The first thread that is idle gets a batch: the later ones work only while those before them are busy. */
  constructor(
    threads: readonly Thread[],
    maxItems: number,
    send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  ) {
    this.#idle = [...threads]
    this.#maxItems = maxItems
    this.#send = send
  }

  /** @throws the error of the whole batch; an item's own failure is part of its outcome */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      this.#schedule()
    })
  }

  /** Waits for whatever else becomes ready in this turn of the event loop. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      while (this.#queue.length > 0) {
        const thread = this.#idle.shift()
        if (thread === undefined) break
        void this.#run(thread, this.#queue.splice(0, this.#maxItems))
      }
    })
  }

  async #run(thread: Thread, batch: readonly Queued<Item, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.#send(
        thread,
        batch.map(({ item }) => item)
      )
      batch.forEach(({ resolve }, i) => resolve(outcomes[i] as Outcome))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#idle.unshift(thread)
      this.#schedule()
    }
  }
}
