interface Queued<Item, Outcome> {
  readonly item: Item
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/**
 * Small pieces of work that go to threads several at a time: waking a thread costs as much as hashing 200 KiB.
 * One batch per thread is under way, counted in its `passes`; what arrives meanwhile makes up the next one, shared evenly.
 */
export class ThreadBatch<Thread extends { passes: number }, Item, Outcome> {
  readonly #threads: readonly Thread[]
  readonly #send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  readonly #maxItems: number
  readonly #queue: Queued<Item, Outcome>[] = []
  readonly #busy = new Set<Thread>()
  #scheduled = false

  constructor(
    threads: readonly Thread[],
    maxItems: number,
    send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  ) {
    this.#threads = threads
    this.#maxItems = maxItems
    this.#send = send
  }

  /** @throws what the whole batch failed with; a failure of this item alone is the outcome's business. */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      // After whatever else becomes ready in this turn.
      setImmediate(() => {
        this.#scheduled = false
        this.#dispatch()
      })
    })
  }

  #dispatch(): void {
    for (const thread of this.#threads) {
      if (this.#queue.length === 0) return
      if (this.#busy.has(thread)) continue
      const share = Math.ceil(this.#queue.length / (this.#threads.length - this.#busy.size))
      const batch = this.#queue.splice(0, Math.min(this.#maxItems, share))
      this.#busy.add(thread)
      thread.passes++
      const items = batch.map(({ item }) => item)
      void this.#send(thread, items)
        .then(
          (outcomes) => batch.forEach(({ resolve }, i) => resolve(outcomes[i] as Outcome)),
          (error: unknown) => batch.forEach(({ reject }) => reject(error))
        )
        .finally(() => {
          thread.passes--
          this.#busy.delete(thread)
          // What these outcomes set going joins the next batch.
          setImmediate(() => this.#dispatch())
        })
    }
  }
}
