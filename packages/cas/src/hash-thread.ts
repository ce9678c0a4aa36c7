import { WorkerThread, workerUrl } from '@svc/internal-workers'
import { threadErrors } from './errors.ts'
import type { ThreadData, ThreadOperations } from './thread-protocol.ts'

/** One thread of the store; its operations are in `hash-worker.ts`. */
export class HashThread extends WorkerThread<ThreadOperations> {
  /** Passes under way in this thread, counted by their callers. */
  passes = 0

  constructor(data: ThreadData) {
    super({
      url: workerUrl('./hash-worker', import.meta.url),
      workerData: data,
      errors: threadErrors
    })
  }
}
