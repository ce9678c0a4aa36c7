interface QueuedItem<Item, Outcome> {
  readonly item: Item
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/** Sends items to a thread together. One batch is under way at a time; what arrives in the meantime is the next one. */
export class Batch<Item, Outcome> {
  readonly #maxItems: number
  readonly #send: (items: Item[]) => Promise<readonly Outcome[]>
  readonly #queue: QueuedItem<Item, Outcome>[] = []
  #isScheduled = false

  constructor(maxItems: number, send: (items: Item[]) => Promise<readonly Outcome[]>) {
    this.#maxItems = maxItems
    this.#send = send
  }

  /** @throws the error of the whole batch; an item's own failure is part of its outcome */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      // whatever else becomes ready in this turn of the event loop comes along.
      setImmediate(() => void this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#maxItems)
      try {
        const outcomes = await this.#send(batch.map(({ item }) => item))
        batch.forEach(({ resolve }, i) => resolve(outcomes[i] as Outcome))
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isScheduled = false
  }
}
