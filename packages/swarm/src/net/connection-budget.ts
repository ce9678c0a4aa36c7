import { hostKey } from '@svc/internal-net'

export type Direction = 'incoming' | 'outgoing'

/** A connection's place in the budget. */
export interface ConnectionPlace {
  /** Returns the place. Idempotent. */
  release(): void
}

/** Limits of an engine's connections, including half-open ones. */
export interface ConnectionBounds {
  readonly total: number
  /** For one host, both directions together. An IPv6 host counts as its /64, which usually belongs to one customer. */
  readonly perHost: number
}

/** The fraction of places that is reserved for outgoing connections. */
const KEPT_FOR_OUTGOING = 1 / 4

/**
 * Limits the number of connections. Incoming ones leave a quarter of the places to those that we open ourselves, and
 * each host has a limit, so that nobody can take all places.
 *
 * Invariants: `incoming + outgoing` ≤ total; incoming ≤ three quarters of it; each host ≤ `perHost`; a place counts
 * until it is released, once.
 */
export class ConnectionBudget {
  readonly #bounds: ConnectionBounds
  readonly #maxIncoming: number
  readonly #used: Record<Direction, number> = { incoming: 0, outgoing: 0 }
  readonly #byHost = new Map<string, number>()

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds
    this.#maxIncoming = Math.max(1, bounds.total - Math.floor(bounds.total * KEPT_FOR_OUTGOING))
  }

  /**
   * Takes a place. `host` is an IP address, or a name to dial. Returns the limit that was reached if there is no place.
   */
  take(direction: Direction, host: string): ConnectionPlace | 'full' | 'host' {
    const key = hostKey(host)
    const ofHost = this.#byHost.get(key) ?? 0
    if (ofHost >= this.#bounds.perHost) return 'host'
    if (this.#used.incoming + this.#used.outgoing >= this.#bounds.total) return 'full'
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

  checkInvariants(): void {
    let hosts = 0
    for (const count of this.#byHost.values()) hosts += count
    if (hosts !== this.#used.incoming + this.#used.outgoing) throw new Error('connections are miscounted')
    if (this.#used.incoming > this.#maxIncoming || hosts > this.#bounds.total) throw new Error('too many connections')
  }
}
