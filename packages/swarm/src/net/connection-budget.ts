import { hostKey } from '@svc/internal-net'

export type Direction = 'incoming' | 'outgoing'

export interface ConnectionPlace {
  /** Returns the place. Idempotent. */
  release(): void
}

/** The fraction of places that is reserved for outgoing connections. */
const KEPT_FOR_OUTGOING = 1 / 4

/**
 * Limits an engine's connections, half-open ones included. Incoming ones leave a quarter of the places to those that we
 * open, and each host has a limit, so that nobody can take all places.
 *
 * Invariants: `incoming + outgoing` ≤ total; incoming ≤ three quarters of it; each host ≤ `perHost`; a place counts
 * until it is released, once.
 */
export class ConnectionBudget {
  readonly total: number
  readonly #perHost: number
  readonly #maxIncoming: number
  readonly #used: Record<Direction, number> = { incoming: 0, outgoing: 0 }
  readonly #byHost = new Map<string, number>()

  /** @param perHost both directions together; an IPv6 host counts as its /64, which usually belongs to one customer */
  constructor(total: number, perHost: number) {
    this.total = total
    this.#perHost = perHost
    this.#maxIncoming = Math.max(1, total - Math.floor(total * KEPT_FOR_OUTGOING))
  }

  /** Takes a place for an IP address or a name to dial, or says which limit was reached. */
  acquire(direction: Direction, host: string): ConnectionPlace | 'full' | 'host' {
    const key = hostKey(host)
    const ofHost = this.#byHost.get(key) ?? 0
    if (ofHost >= this.#perHost) return 'host'
    if (this.#used.incoming + this.#used.outgoing >= this.total) return 'full'
    if (direction === 'incoming' && this.#used.incoming >= this.#maxIncoming) return 'full'
    this.#used[direction] += 1
    this.#byHost.set(key, ofHost + 1)
    let released = false
    return {
      release: () => {
        if (released) return
        released = true
        this.#used[direction] -= 1
        const left = this.#byHost.get(key)! - 1
        if (left === 0) this.#byHost.delete(key)
        else this.#byHost.set(key, left)
      }
    }
  }
}
