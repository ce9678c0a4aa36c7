import { HostShares } from '@svc/internal-server'
import { HostUse } from './host-use.ts'

interface QueuedTurn {
  readonly host: string
  readonly begin: () => void
  readonly refuse: (error: Error) => void
}

export interface QueueLimits {
  readonly atOnce: number
  readonly maxWaiting: number
}

/**
 * Does work for clients, a few at a time; the host that has had the least is next ({@link HostUse}). Hosts share the
 * waiting places: while all are taken, the oldest of the host with the most is refused for a host with fewer.
 */
export class HostQueue {
  #free: number
  readonly #waiting = new Set<QueuedTurn>()
  readonly #places: HostShares<QueuedTurn>
  readonly #use: HostUse
  readonly #refusal: () => Error

  /** @param nowMs a monotonic clock. @param refusal makes the error for refused work */
  constructor({ atOnce, maxWaiting }: QueueLimits, nowMs: () => number, refusal: () => Error) {
    this.#free = atOnce
    this.#places = new HostShares(maxWaiting)
    this.#use = new HostUse(nowMs)
    this.#refusal = refusal
  }

  /** Does the work when its turn comes, for the client at IP address `host`. @throws the refusal, errors of `work` */
  async run<T>(host: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn(host)
    const end = this.#use.begin(host)
    try {
      return await work()
    } finally {
      end()
      this.#next()
    }
  }

  #turn(host: string): Promise<void> {
    return new Promise((begin, refuse) => {
      const waiting: QueuedTurn = { host, begin, refuse }
      this.#waiting.add(waiting)
      const going = this.#places.add(host, waiting)
      if (going === undefined) return
      this.#waiting.delete(going)
      going.refuse(this.#refusal())
    })
  }

  #next(): void {
    let next: QueuedTurn | undefined
    let leastMs = Infinity
    for (const waiting of this.#waiting) {
      const usedMs = this.#use.of(waiting.host)
      if (usedMs >= leastMs) continue
      leastMs = usedMs
      next = waiting
    }
    if (next === undefined) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    this.#places.delete(next)
    next.begin()
  }
}
