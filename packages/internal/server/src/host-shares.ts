import { hostKey } from '@svc/internal-net'

export interface EvictionPolicy<T> {
  /** Whether the holder has probably left: its place is taken first, for its own host and for hosts with fewer. */
  readonly hasLeft?: (holder: T) => boolean
  /** Chooses among the holders of one host, at least one, the oldest first; default: the oldest. */
  readonly leastOf?: (held: ReadonlySet<T>) => T
}

interface Host<T> {
  readonly user: string
  readonly key: string
  readonly held: Set<T>
}

/**
 * Places that hosts share: while all are taken, a host with more than the newcomer's gives one up. So a client,
 * or a proxy for many, may use all of them while alone, and keeps none from others. At most `limit` holders are in,
 * each once. A user with several hosts counts as one towards all others, and shares the user's places among them.
 */
export class HostShares<T> {
  readonly limit: number
  readonly #hasLeft: (holder: T) => boolean
  readonly #leastOf: (held: ReadonlySet<T>) => T
  readonly #hosts = new Map<string, Host<T>>()
  readonly #hostOf = new Map<T, Host<T>>()
  readonly #countOf = new Map<string, number>()

  constructor(limit: number, { hasLeft = () => false, leastOf = ([oldest]) => oldest! }: EvictionPolicy<T> = {}) {
    this.limit = limit
    this.#hasLeft = hasLeft
    this.#leastOf = leastOf
  }

  get size(): number {
    return this.#hostOf.size
  }

  /**
   * Gives a place to `holder`, of the client at IP address `host`. `user`: who uses that host; default: nobody else's.
   * @returns the holder that lost its place: undefined if there was room, `holder` itself if its host has its share.
   */
  add(host: string, holder: T, user = hostKey(host)): T | undefined {
    const own = this.#host(user, hostKey(host))
    let going: T | undefined
    if (this.#hostOf.size >= this.limit) {
      going = this.#gone(own) ?? this.#ofTheGreediest(own)
      if (going === undefined) return holder
      this.delete(going)
    }
    this.#put(own, holder)
    return going
  }

  /** `holder`, if it has a place, is of this user. */
  assign(holder: T, user: string): void {
    const before = this.#hostOf.get(holder)
    if (before === undefined || before.user === user) return
    this.delete(holder)
    this.#put(this.#host(user, before.key), holder)
  }

  /** Gives a place back, if `holder` has one. */
  delete(holder: T): void {
    const host = this.#hostOf.get(holder)
    if (host === undefined) return
    this.#hostOf.delete(holder)
    host.held.delete(holder)
    if (host.held.size === 0) this.#hosts.delete(nameOf(host))
    const left = this.#countOf.get(host.user)! - 1
    if (left === 0) this.#countOf.delete(host.user)
    else this.#countOf.set(host.user, left)
  }

  #host(user: string, key: string): Host<T> {
    return this.#hosts.get(nameOf({ user, key })) ?? { user, key, held: new Set() }
  }

  #put(host: Host<T>, holder: T): void {
    host.held.add(holder)
    this.#hosts.set(nameOf(host), host)
    this.#hostOf.set(holder, host)
    this.#countOf.set(host.user, this.#count(host) + 1)
  }

  #count({ user }: Host<T>): number {
    return this.#countOf.get(user) ?? 0
  }

  /** How many places more than `own` a host has; if it is another user's, that user. */
  #lead(host: Host<T>, own: Host<T>): number {
    return host.user === own.user ? host.held.size - own.held.size : this.#count(host) - this.#count(own)
  }

  #gone(own: Host<T>): T | undefined {
    for (const host of this.#hosts.values()) {
      if (host !== own && this.#lead(host, own) <= 0) continue
      for (const holder of host.held) if (this.#hasLeft(holder)) return holder
    }
    return undefined
  }

  /** Undefined if nobody has two more than the host of `own`, or its user. */
  #ofTheGreediest(own: Host<T>): T | undefined {
    let most: Host<T> | undefined
    for (const host of this.#hosts.values())
      if (this.#lead(host, own) >= 2 && (most === undefined || this.#isGreedier(host, most))) most = host
    return most === undefined ? undefined : this.#leastOf(most.held)
  }

  #isGreedier(host: Host<T>, other: Host<T>): boolean {
    const more = this.#count(host) - this.#count(other)
    return more > 0 || (more === 0 && host.held.size > other.held.size)
  }
}

const nameOf = ({ user, key }: Pick<Host<unknown>, 'user' | 'key'>): string => `${user} ${key}`
