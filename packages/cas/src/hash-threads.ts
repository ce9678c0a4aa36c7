import { availableParallelism } from 'node:os'
import { type MessagePort, Worker } from 'node:worker_threads'
import { CasError, closedError, decodeError } from './errors.ts'
import type { FilePortModule } from './file-port.ts'
import { Gate, type Release } from './keyed-lock.ts'
import { ThreadBatch } from './thread-batch.ts'
import type {
  CommitItem,
  CommitOutcome,
  SmallCheck,
  SmallRun,
  SmallRunOutcome,
  ThreadData,
  ThreadOperation,
  ThreadOperations,
  ThreadReply,
  ThreadRequest
} from './thread-protocol.ts'

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

const MAX_COMMITS = 64
const MAX_SMALL = 16
/**
 * Threads that only sync and publish, so that a slow fsync holds up neither hashing nor the process's I/O pool. The file
 * system joins fsyncs that wait together: with eight in flight small files take a third of the time that two need. A thread
 * starts when there is more to publish than the others have begun.
 */
const SYNC_THREADS = 8

/** The store's threads: `hashThreads` that read, hash and write, and those that sync and publish. */
export class HashThreads {
  readonly #hash: readonly HashThread[]
  readonly #sync: readonly HashThread[]
  readonly #passGate: Gate
  readonly #commits: ThreadBatch<CommitItem, CommitOutcome>
  readonly #runs: ThreadBatch<SmallRun, SmallRunOutcome>
  readonly #checks: ThreadBatch<SmallCheck, boolean>
  #nextSession = 1

  constructor(filePort: FilePortModule | undefined, count = Math.min(4, availableParallelism())) {
    if (!Number.isInteger(count) || count < 1 || count > 64)
      throw new RangeError('hashThreads is a number from 1 to 64')
    const data: ThreadData = { filePort }
    this.#hash = Array.from({ length: count }, () => new HashThread(data))
    this.#sync = Array.from({ length: SYNC_THREADS }, () => new HashThread(data))
    // Two per thread: the next small file is at hand when one is done.
    this.#passGate = new Gate(count * 2)
    this.#commits = new ThreadBatch(this.#sync, MAX_COMMITS, (thread, items) => {
      const transfer = items.flatMap(({ bytes }) => (bytes === undefined ? [] : [bytes.buffer as ArrayBuffer]))
      return thread.call('commit', { items }, { transfer })
    })
    this.#runs = new ThreadBatch(this.#hash, MAX_SMALL, (thread, items) => thread.call('runSmall', { items }))
    this.#checks = new ThreadBatch(this.#hash, MAX_SMALL, (thread, items) => thread.call('check', { items }))
  }

  get hashThreads(): number {
    return this.#hash.length
  }

  nextSession(): number {
    return this.#nextSession++
  }

  /** The thread with the fewest passes; `release` when the pass is over. */
  take(): { readonly thread: HashThread; readonly release: Release } {
    let thread = this.#hash[0] as HashThread
    for (const other of this.#hash) if (other.passes < thread.passes) thread = other
    thread.passes++
    let held = true
    return {
      thread,
      release: () => {
        if (held) thread.passes--
        held = false
      }
    }
  }

  /** As {@link take}, after a fair wait for one of two places per thread: for passes that keep a thread busy. */
  async takeBusy(signal?: AbortSignal): Promise<{ readonly thread: HashThread; readonly release: Release }> {
    const leave = await this.#passGate.enter(signal)
    const taken = this.take()
    return {
      thread: taken.thread,
      release: () => {
        taken.release()
        leave()
      }
    }
  }

  /** A second thread for a large pass, when it would otherwise idle. */
  takeIdle(): { readonly thread: HashThread; readonly release: Release } | undefined {
    if (this.#passGate.waiting > 0 || !this.#hash.some((thread) => thread.passes === 0)) return undefined
    return this.take()
  }

  /** In the thread that publishes last of all: whatever is to be published meanwhile finds another one. */
  datasync(fd: number): Promise<undefined> {
    return (this.#sync.at(-1) as HashThread).call('datasync', { fd })
  }

  /** Syncs and publishes; items that wait for a thread go together. The digest's lock is the caller's business. */
  commit(item: CommitItem): Promise<CommitOutcome> {
    return this.#commits.add(item)
  }

  /** A whole pass over a small file. It is not stopped half-way; a failed one leaves nothing behind. */
  runSmall(item: SmallRun): Promise<SmallRunOutcome> {
    return this.#runs.add(item)
  }

  /** Whether a small blob's file is what its digest says; false is no more than a reason to look closely. */
  check(item: SmallCheck): Promise<boolean> {
    return this.#checks.add(item)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hash, ...this.#sync].map((thread) => thread.close()))
  }
}
