import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import type { Calls, ProgressOf, ThreadCallOptions } from './protocol.ts'
import { WorkerThread, type WorkerThreadOptions } from './worker-thread.ts'

interface PoolOptions extends WorkerThreadOptions {
  readonly threads: number
  /** Calls that one thread has at once; with 2 the next is ready when one is answered. Default 2. */
  readonly depth?: number
  /** Threads that are idle for this long are ended, and restarted when needed. Default: they stay. */
  readonly idleMs?: number
  readonly clock?: Clock
}

interface QueuedCall {
  readonly send: (thread: { call: unknown }) => void
  readonly reject: (error: Error) => void
}

/**
 * Threads that share one queue of calls; each call goes to the thread with the fewest. Threads are started one by one
 * as calls arrive.
 *
 * Invariant: a call waits here only while every thread has `depth` calls.
 */
export class WorkerPool<Of extends Calls<Of>> {
  readonly #threads: readonly WorkerThread<Of>[]
  readonly #depth: number
  readonly #idleMs: number | undefined
  readonly #closedError: () => Error
  readonly #queue = new Set<QueuedCall>()
  #calls = 0
  readonly #clock: Clock
  #idle: Timer | undefined
  #closed = false

  constructor({ threads, depth = 2, idleMs, clock = systemClock, ...thread }: PoolOptions) {
    this.#clock = clock
    this.#threads = Array.from({ length: threads }, () => new WorkerThread<Of>(thread))
    this.#depth = depth
    this.#idleMs = idleMs
    this.#closedError = thread.errors?.closed ?? (() => new Error('the worker threads are closed'))
  }

  /** Like `WorkerThread.call`, in whichever thread is free first. An abort removes a waiting call from the queue. */
  call<Op extends keyof Of>(
    op: Op,
    request: Of[Op]['request'],
    options: ThreadCallOptions<ProgressOf<Of[Op]>> = {}
  ): Promise<Of[Op]['response']> {
    if (this.#closed) return Promise.reject(this.#closedError())
    const { signal } = options
    if (signal?.aborted) return Promise.reject(signal.reason)
    this.#idle?.cancel()
    this.#calls++
    return new Promise<Of[Op]['response']>((resolve, reject) => {
      const giveUp = (): void => {
        this.#queue.delete(queued)
        reject(signal!.reason)
      }
      const queued: QueuedCall = {
        send: (thread) => {
          signal?.removeEventListener('abort', giveUp)
          ;(thread as WorkerThread<Of>).call(op, request, options).then(resolve, reject)
        },
        reject
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      this.#queue.add(queued)
      this.#dispatch()
    }).finally(() => {
      this.#calls--
      this.#dispatch()
      this.#armIdle()
    })
  }

  /** Starts all threads ahead of the first call. */
  warm(): void {
    for (const thread of this.#threads) thread.warm()
    this.#armIdle()
  }

  /** Ends the threads and rejects waiting and running calls; resolves when the threads have ended. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true
    this.#idle?.cancel()
    const waiting = [...this.#queue]
    this.#queue.clear()
    for (const { reject } of waiting) reject(this.#closedError())
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #dispatch(): void {
    for (const queued of this.#queue) {
      let free = this.#threads[0]!
      for (const thread of this.#threads) if (thread.pendingCalls < free.pendingCalls) free = thread
      if (free.pendingCalls >= this.#depth) return
      this.#queue.delete(queued)
      queued.send(free)
    }
  }

  #armIdle(): void {
    if (this.#idleMs === undefined || this.#calls > 0 || this.#closed) return
    this.#idle?.cancel()
    this.#idle = this.#clock.after(this.#idleMs, () => {
      for (const thread of this.#threads) thread.rest()
    })
  }
}
