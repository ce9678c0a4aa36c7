import type { JobKind } from '@svc/client/protocol'

/** How many jobs of a kind run at once; further ones wait in order. A verify reads everything, so one is enough. */
export const LANE_WIDTHS: Readonly<Record<JobKind, number>> = {
  ensure: 8,
  'import-local': 2,
  'import-hf': 2,
  'import-bt': 4,
  'import-catalog': 2,
  verify: 1
}

/** One first-in, first-out queue per kind of job. */
export class Lanes {
  readonly #widths: Readonly<Record<JobKind, number>>
  readonly #running = new Map<JobKind, number>()
  readonly #waiting = new Map<JobKind, (() => void)[]>()

  constructor(widths: Readonly<Record<JobKind, number>> = LANE_WIDTHS) {
    this.#widths = widths
  }

  /** Runs `work` when the lane has room, in a later turn at the earliest. An abort while waiting rejects with its reason. */
  async run<T>(kind: JobKind, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await Promise.resolve()
    await this.#enter(kind, signal)
    try {
      signal.throwIfAborted()
      return await work()
    } finally {
      this.#leave(kind)
    }
  }

  #enter(kind: JobKind, signal: AbortSignal): Promise<void> {
    const running = this.#running.get(kind) ?? 0
    if (running < this.#widths[kind]) {
      this.#running.set(kind, running + 1)
      return Promise.resolve()
    }
    const queue = this.#waiting.get(kind) ?? []
    this.#waiting.set(kind, queue)
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        const at = queue.indexOf(enter)
        if (at >= 0) queue.splice(at, 1)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.push(enter)
    })
  }

  #leave(kind: JobKind): void {
    const next = this.#waiting.get(kind)?.shift()
    if (next !== undefined) next()
    else this.#running.set(kind, (this.#running.get(kind) ?? 1) - 1)
  }
}
