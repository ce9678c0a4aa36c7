import { availableParallelism } from 'node:os'
import { Gate, type Release } from '@svc/internal-concurrency'
import type { FilePortModule } from '@svc/internal-files'
import { WorkerThread, workerUrl } from '@svc/internal-workers'
import { Batch } from './batch.ts'
import { abortError, threadErrors } from './errors.ts'
import type {
  CommitItem,
  CommitOutcome,
  NamedOutcome,
  NamedRun,
  ThreadData,
  ThreadOperations
} from './thread-protocol.ts'

/** The more parts are synced together, the fewer commits of the file system's journal they take. */
const MAX_COMMITS = 256
/**
 * All threads give way to the event loop, which needs little CPU, but at once. On two busy cores it waited for several
 * time slices of 12 ms while the threads had the same or nearly the same priority. With these values it runs soon; larger
 * ones gain nothing, and slow down hub imports and fills (measured). The follower comes before the threads that bring
 * the bytes, which the daemon places between these two: if it falls behind them, it hashes alone after the last byte.
 */
const FOLLOWER_NICE = 5
const NICE = 10

/** Session numbers are unique in the process, since a thread may serve one store after another. */
let nextSession = 1

/** One thread of the store; its operations are in `hash-worker.ts`. */
export class HashThread extends WorkerThread<ThreadOperations> {
  /** Passes under way in this thread, counted by their callers. */
  passes = 0

  constructor(data: ThreadData) {
    super({ url: workerUrl('./hash-worker', import.meta.url), workerData: data, errors: threadErrors })
  }
}

interface AcquiredThread {
  readonly thread: HashThread
  readonly release: Release
}

/** The store's threads: `hashThreads` of them read, hash and write; one more syncs and commits. */
export class HashThreads {
  readonly #hash: readonly HashThread[]
  /**
   * Only syncs and commits, so that a slow fsync holds up neither hashing nor the process's I/O pool. Large parts are
   * synced before they come here. A second such thread takes 60 ms of CPU to start, and speeds up nothing (row
   * import-small).
   */
  readonly #commit: HashThread
  /**
   * Hashes bytes as they arrive over the network, before the others: somebody waits for the hash when the last byte is
   * there. Its users share it, since hashing is faster than a network.
   */
  readonly follower: HashThread
  readonly #passGate: Gate
  readonly #commits: Batch<CommitItem, CommitOutcome>

  /** `root` is the store's. */
  constructor(root: string, filePort: FilePortModule | undefined, count = Math.min(4, availableParallelism())) {
    if (!Number.isInteger(count) || count < 1 || count > 64)
      throw new RangeError('hashThreads is a number from 1 to 64')
    const data: ThreadData = { filePort, nice: NICE }
    this.#hash = Array.from({ length: count }, () => new HashThread(data))
    this.#commit = new HashThread(data)
    this.follower = new HashThread({ filePort, nice: FOLLOWER_NICE })
    // two per thread, so that the next small file is ready when one is done.
    this.#passGate = new Gate(count * 2, abortError)
    this.#commits = new Batch(MAX_COMMITS, (items) => {
      const transfer = items.flatMap(({ bytes }) => (bytes === undefined ? [] : [bytes.buffer as ArrayBuffer]))
      return this.#commit.call('commit', { root, items }, { transfer })
    })
  }

  get hashThreads(): number {
    return this.#hash.length
  }

  nextSession(): number {
    return nextSession++
  }

  /** The thread with the fewest passes; call `release` when the pass is over. */
  acquire(): AcquiredThread {
    let thread = this.#hash[0] as HashThread
    for (const other of this.#hash) if (other.passes < thread.passes) thread = other
    thread.passes++
    let isHeld = true
    return {
      thread,
      release: () => {
        if (isHeld) thread.passes--
        isHeld = false
      }
    }
  }

  /** Like {@link acquire}, for passes that keep a thread busy: waits for one of two places per thread. */
  async acquireBusy(signal?: AbortSignal): Promise<AcquiredThread> {
    const leave = await this.#passGate.enter(signal)
    const acquired = this.acquire()
    return {
      thread: acquired.thread,
      release: () => {
        acquired.release()
        leave()
      }
    }
  }

  /** A second thread for a large pass, if one is idle. */
  acquireIdle(): AcquiredThread | undefined {
    if (this.#passGate.waiting > 0 || !this.#hash.some((thread) => thread.passes === 0)) return undefined
    return this.acquire()
  }

  /** Syncs and commits. Items that wait for a thread are sent together. The caller must hold the digest's lock. */
  commit(item: CommitItem): Promise<CommitOutcome> {
    return this.#commits.add(item)
  }

  /** Whole passes over small files that a thread opens. They cannot be interrupted; a failed one leaves nothing behind. */
  async runNamed(run: NamedRun, signal?: AbortSignal): Promise<readonly NamedOutcome[]> {
    const { thread, release } = await this.acquireBusy(signal)
    try {
      return await thread.call('runNamed', run)
    } finally {
      release()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hash, this.#commit, this.follower].map((thread) => thread.close()))
  }
}
