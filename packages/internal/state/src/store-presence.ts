import { CasError, type DiskBlobStore } from '@svc/cas'
import type { Clock, Timer } from '@svc/internal-clock'
import type { Log } from './log.ts'

/** How soon the log says that the store is gone, while there are no requests. */
const LOOK_MS = 5_000

/**
 * Called before each request. Requests about jobs, and those that cancel them, need no store. Frequent requests check
 * only the root, and the folders if they find nothing. @throws CasError `E_STORE_GONE`, `E_IO`
 */
export function requireStore(store: Pick<DiskBlobStore, 'requireRoot' | 'check'>, url: string): void {
  if (/^\/v1\/(?:resolve|blob)\b/.test(url)) store.requireRoot()
  else if (url.startsWith('/v1/') && !url.startsWith('/v1/jobs')) store.check()
}

/** The store's problem, for probes; undefined if it is sound. */
export function storeProblem(store: Pick<DiskBlobStore, 'check'>): string | undefined {
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

  constructor(store: Pick<DiskBlobStore, 'check'>, log: Log, clock: Clock) {
    this.#timer = clock.every(LOOK_MS, () => {
      const problem = storeProblem(store)
      if (problem !== undefined && this.#problem === undefined) log.error({ problem }, 'the store is gone')
      if (problem === undefined && this.#problem !== undefined) log.warn({}, 'the store is back')
      this.#problem = problem
    })
  }

  close(): void {
    this.#timer.cancel()
  }
}
