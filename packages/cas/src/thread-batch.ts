interface Queued<Item, Outcome> {
  readonly item: Item
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

/**
 * How long items wait before a thread that was not needed so far is started for them. A start takes 60 ms of CPU, and where only the cores are
 * busy, not the disk, it makes all of them later.
 */
const JOIN_MS = 100

/**
 * Sends small work items to threads in batches, since waking a thread costs as much as hashing 200 KiB. Each thread has
 * at most one batch under way, counted in its `passes`; what arrives in the meantime is shared evenly among the next
 * batches.
 */
export class ThreadBatch<Thread extends { passes: number }, Item, Outcome> {
  readonly #threads: readonly Thread[]
  readonly #send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  readonly #maxItems: number
  readonly #queue: Queued<Item, Outcome>[] = []
  readonly #busy = new Set<Thread>()
  #scheduled = false
  /** The first so many threads get work. */
  #joined: number
  #joining: NodeJS.Timeout | undefined

  /** Only the first `joined` threads get work, default all; one more does whenever items have waited for {@link JOIN_MS}. */
  constructor(
    threads: readonly Thread[],
    { maxItems, joined = threads.length }: { readonly maxItems: number; readonly joined?: number },
    send: (thread: Thread, items: Item[]) => Promise<readonly Outcome[]>
  ) {
    this.#threads = threads
    this.#maxItems = maxItems
    this.#joined = joined
    this.#send = send
  }

  /** @throws the error of the whole batch; an item's own failure is part of its outcome */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      // Wait for whatever else becomes ready in this turn of the event loop.
      setImmediate(() => {
        this.#scheduled = false
        this.#dispatch()
      })
    })
  }

  #dispatch(): void {
    for (const thread of this.#threads.slice(0, this.#joined)) {
      if (this.#queue.length === 0) break
      if (this.#busy.has(thread)) continue
      const share = Math.ceil(this.#queue.length / (this.#joined - this.#busy.size))
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
          // Work that follows from these outcomes joins the next batch.
          setImmediate(() => this.#dispatch())
        })
    }
    if (this.#queue.length === 0) {
      clearTimeout(this.#joining)
      this.#joining = undefined
    } else if (this.#joined < this.#threads.length) this.#joining ??= setTimeout(() => this.#join(), JOIN_MS).unref()
  }

  #join(): void {
    this.#joining = undefined
    this.#joined++
    this.#dispatch()
  }
}
