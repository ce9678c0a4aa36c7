import { CasError, type DiskBlobStore } from '@svc/cas'
import type { Clock, Timer } from '@svc/internal-clock'
import type { Log } from '../log.ts'

type Looked = Pick<DiskBlobStore, 'check'>

/** How soon the log says that the store is gone, while there are no requests. */
const LOOK_MS = 5_000

/** The store's problem, for probes; undefined if it is sound. */
export function storeProblem(store: Looked): string | undefined {
  try {
    store.check()
    return undefined
  } catch (error) {
    return error instanceof CasError && error.code === 'E_STORE_GONE' ? error.message : 'the store cannot be checked'
  }
}

/** Logs when the store goes away, and when it is back. */
export class StoreWatch {
  readonly #timer: Timer
  #problem: string | undefined

  constructor(store: Looked, log: Log, clock: Clock) {
    this.#timer = clock.every(LOOK_MS, () => {
      const problem = storeProblem(store)
      if (problem !== undefined && this.#problem === undefined) log.error({ problem }, 'the store is gone')
      if (problem === undefined && this.#problem !== undefined) log.warn('the store is back')
      this.#problem = problem
    })
  }

  close(): void {
    this.#timer.cancel()
  }
}
