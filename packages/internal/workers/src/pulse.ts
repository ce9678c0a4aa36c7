import { workerData } from 'node:worker_threads'

/** Start parameters of a supervised thread. */
export interface SupervisedData {
  readonly data: unknown
  /** A counter in memory shared with the owner, which increases while the thread's event loop turns. */
  readonly pulse: Int32Array
  readonly beatMs: number
}

/**
 * Called once by a supervised thread's module before its other work; returns its start parameters. From then on the
 * owner can see that the thread's event loop turns; a thread in an endless loop stops showing that, and is ended.
 */
export function supervisedData<Data>(): Data {
  const { data, pulse, beatMs } = workerData as SupervisedData
  setInterval(() => void Atomics.add(pulse, 0, 1), beatMs).unref()
  return data as Data
}
