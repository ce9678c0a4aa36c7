import { availableParallelism } from 'node:os'
import type { DownloadLimit } from '@svc/internal-net'
import { WorkerPool, workerUrl } from '@svc/internal-workers'
import type { RangeCalls, RangeJob, RangeProgress, RangeReply, RangeThreadData } from './range-protocol.ts'

const IDLE_MS = 10_000
/** More gain nothing: two handle more than a gigabyte per second. */
const MAX_THREADS = 4

/** Threads that fetch ranges into files, each with its own connections. Started with the first range. */
export class RangeThreads extends WorkerPool<RangeCalls> {
  /** @param nice the threads' niceness on Linux @param downloads the limit that the threads observe */
  constructor(
    nice = 0,
    downloads?: DownloadLimit,
    threads = Math.max(2, Math.min(MAX_THREADS, availableParallelism()))
  ) {
    const workerData: RangeThreadData = { nice, limit: downloads?.memory }
    const url = workerUrl('./range-worker', import.meta.url)
    // a range waits for a connection, not for a thread
    super({ url, name: 'hub range', workerData, threads, depth: Number.POSITIVE_INFINITY, idleMs: IDLE_MS })
  }

  /** Settles when the thread no longer uses the file, also after an abort. @throws errors of the network, with their codes */
  fetch(job: RangeJob, signal: AbortSignal, onProgress: (progress: RangeProgress) => void): Promise<RangeReply> {
    return this.call('fetch', job, { signal, onProgress })
  }
}
