import { hostKey } from '@svc/internal-net'

export interface EvictionPolicy<T> {
  /** Whether the holder has probably left: its place is taken first, for its own host and for hosts with fewer. */
  readonly hasLeft?: (holder: T) => boolean
  /** Chooses among the holders of one host, at least one, the oldest first; default: the oldest. */
  readonly leastOf?: (held: ReadonlySet<T>) => T
}

/**
 * Places that hosts share: while all are taken, a host with more than the newcomer's gives one up. So a client,
 * or a proxy for many, may use all of them while alone, and keeps none from others. At most `limit` holders are in,
 * each once.
 */
export class HostShares<T> {
  readonly limit: number
  readonly #hasLeft: (holder: T) => boolean
  readonly #leastOf: (held: ReadonlySet<T>) => T
  readonly #byHost = new Map<string, Set<T>>()
  readonly #hostOf = new Map<T, string>()

  constructor(limit: number, { hasLeft = () => false, leastOf = ([oldest]) => oldest! }: EvictionPolicy<T> = {}) {
    this.limit = limit
    this.#hasLeft = hasLeft
    this.#leastOf = leastOf
  }

  get size(): number {
    return this.#hostOf.size
  }

  /**
   * Gives a place to `holder`, of the client at IP address `host`.
   * @returns the holder that lost its place: undefined if there was room, `holder` itself if its host has its share.
   */
  add(host: string, holder: T): T | undefined {
    const key = hostKey(host)
    const own = this.#byHost.get(key) ?? new Set<T>()
    let going: T | undefined
    if (this.#hostOf.size >= this.limit) {
      going = this.#gone(own) ?? this.#ofTheGreediest(own)
      if (going === undefined) return holder
      this.delete(going)
    }
    own.add(holder)
    this.#byHost.set(key, own)
    this.#hostOf.set(holder, key)
    return going
  }

  #gone(own: ReadonlySet<T>): T | undefined {
    for (const held of this.#byHost.values()) {
      if (held !== own && held.size <= own.size) continue
      for (const holder of held) if (this.#hasLeft(holder)) return holder
    }
    return undefined
  }

  /** Undefined if no host has two more than the host of `own`. */
  #ofTheGreediest(own: ReadonlySet<T>): T | undefined {
    let most = own
    for (const held of this.#byHost.values()) if (held.size > most.size) most = held
    return most.size < own.size + 2 ? undefined : this.#leastOf(most)
  }

  /** Gives a place back, if `holder` has one. */
  delete(holder: T): void {
    const key = this.#hostOf.get(holder)
    if (key === undefined) return
    this.#hostOf.delete(holder)
    const held = this.#byHost.get(key)!
    held.delete(holder)
    if (held.size === 0) this.#byHost.delete(key)
  }
}
