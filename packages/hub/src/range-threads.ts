import { availableParallelism } from 'node:os'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { plainErrors, WorkerThread, workerUrl } from '@svc/internal-workers'
import type { RangeCalls, RangeJob, RangeProgress, RangeReply, RangeThreadData } from './range-protocol.ts'

/** Idle threads are stopped after this time. */
const IDLE_MS = 10_000
/** More gain nothing: two handle more than a gigabyte per second. */
const MAX_THREADS = 4

/** Threads that fetch ranges into files, each with its own connections. Started with the first range. */
export class RangeThreads {
  readonly #threads: readonly WorkerThread<RangeCalls>[]
  readonly #clock: Clock
  #idle: Timer | undefined
  #calls = 0

  /** `nice` is the threads' niceness on Linux. */
  constructor(count = Math.max(2, Math.min(MAX_THREADS, availableParallelism())), nice = 0, clock = systemClock) {
    this.#clock = clock
    const url = workerUrl('./range-worker', import.meta.url)
    const workerData: RangeThreadData = { nice }
    this.#threads = Array.from(
      { length: count },
      () => new WorkerThread<RangeCalls>({ url, errors: plainErrors, name: 'hub range', workerData })
    )
  }

  /**
   * Settles when the thread no longer uses the file, also after an abort. @throws errors of the network, with their
   * codes
   */
  async fetch(job: RangeJob, signal: AbortSignal, onProgress: (progress: RangeProgress) => void): Promise<RangeReply> {
    this.#idle?.cancel()
    this.#calls += 1
    let least = this.#threads[0]!
    for (const thread of this.#threads) if (thread.pendingCalls < least.pendingCalls) least = thread
    try {
      return await least.call('fetch', job, { signal, onProgress })
    } finally {
      this.#calls -= 1
      if (this.#calls === 0) this.#rest()
    }
  }

  async close(): Promise<void> {
    this.#idle?.cancel()
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #rest(): void {
    this.#idle?.cancel()
    this.#idle = this.#clock.after(IDLE_MS, () => {
      for (const thread of this.#threads) thread.rest()
    })
  }
}
