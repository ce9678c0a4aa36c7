import { workerData } from 'node:worker_threads'

/** How a supervised thread begins. */
export interface SupervisedData {
  readonly data: unknown
  /** One counter, in memory that the thread shares with its owner: it grows while the thread's event loop turns. */
  readonly pulse: Int32Array
  readonly beatMs: number
}

/**
 * For the module of a supervised thread, once, before its other work: what it was started with. From then on its owner sees that its
 * event loop turns; a thread in an endless loop shows nothing, and is ended.
 */
export function supervisedData<Data>(): Data {
  const { data, pulse, beatMs } = workerData as SupervisedData
  setInterval(() => void Atomics.add(pulse, 0, 1), beatMs).unref()
  return data as Data
}
