import { type MessagePort, Worker } from 'node:worker_threads'
import { CasError, closedError, decodeError } from './errors.ts'
import type { ThreadData, ThreadOperation, ThreadOperations, ThreadReply, ThreadRequest } from './thread-protocol.ts'

const WORKER = new URL(`./hash-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)

interface Pending {
  resolve(result: unknown): void
  reject(error: unknown): void
  readonly onProgress: ((bytes: number) => void) | undefined
}

/** One worker thread, started on first use, holding the process open only while it owes an answer. */
export class HashThread {
  readonly #data: ThreadData
  #worker: Worker | undefined
  #nextId = 1
  readonly #pending = new Map<number, Pending>()
  #closed = false
  /** Passes under way in this thread, counted by those who start them. */
  passes = 0

  constructor(data: ThreadData) {
    this.#data = data
  }

  /** @throws CasError what the operation failed with; `E_THREAD` when the thread died. */
  call<K extends ThreadOperation>(
    op: K,
    request: ThreadOperations[K]['request'],
    options: {
      readonly transfer?: readonly (ArrayBuffer | MessagePort)[]
      readonly onProgress?: ((bytes: number) => void) | undefined
    } = {}
  ): Promise<ThreadOperations[K]['response']> {
    if (this.#closed) return Promise.reject(closedError('the store'))
    const worker = (this.#worker ??= this.#start())
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) worker.ref()
      this.#pending.set(id, { resolve: resolve as (result: unknown) => void, reject, onProgress: options.onProgress })
      worker.postMessage({ id, op, ...request } as unknown as ThreadRequest, options.transfer ?? [])
    })
  }

  #start(): Worker {
    // Descriptors travel between threads: a thread that ends must not close numbers that others use by then.
    const worker = new Worker(WORKER, { workerData: this.#data, trackUnmanagedFds: false })
    worker.on('message', (reply: ThreadReply) => {
      const pending = this.#pending.get(reply.id)
      if (pending === undefined) return
      if ('progress' in reply) return pending.onProgress?.(reply.progress)
      this.#pending.delete(reply.id)
      if (this.#pending.size === 0) worker.unref()
      if ('error' in reply) pending.reject(decodeError(reply.error))
      else pending.resolve(reply.result)
    })
    let cause: unknown
    worker.on('error', (error) => {
      cause = error
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      const lost = [...this.#pending.values()]
      this.#pending.clear()
      for (const { reject } of lost) {
        reject(
          this.#closed
            ? closedError('the store')
            : new CasError('E_THREAD', 'a hashing thread ended unexpectedly', {}, cause)
        )
      }
    })
    worker.unref()
    return worker
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#worker?.terminate()
  }
}
