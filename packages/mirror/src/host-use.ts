import { hostKey } from '@svc/internal-net'
import { LRUCache } from 'lru-cache'

/** The half-life of a host's past use. */
const HALF_LIFE_MS = 600_000
/** Hosts whose use is known; the one known longest is forgotten first. */
const MAX_HOSTS = 1_000

interface HostTime {
  /** The ended uses, as they counted at `atMs`. */
  usedMs: number
  atMs: number
  /** The start of each running use. */
  readonly begun: Set<{ readonly atMs: number }>
}

/**
 * How long hosts have used something that all want; past use counts less with time. The host with the least comes
 * first, so one that asks rarely does not wait behind hosts that always ask, however many there are.
 */
export class HostUse {
  readonly #nowMs: () => number
  readonly #known = new LRUCache<string, HostTime>({ max: MAX_HOSTS })

  /** @param nowMs a monotonic clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Milliseconds, running uses included. */
  of(host: string): number {
    const known = this.#known.peek(hostKey(host))
    if (known === undefined) return 0
    const nowMs = this.#nowMs()
    let usedMs = decayed(known, nowMs)
    for (const { atMs } of known.begun) usedMs += nowMs - atMs
    return usedMs
  }

  /** Begins a use by the client at IP address `host`. @returns ends it; idempotent */
  begin(host: string): () => void {
    const key = hostKey(host)
    const nowMs = this.#nowMs()
    const known = this.#known.get(key) ?? { usedMs: 0, atMs: nowMs, begun: new Set() }
    this.#known.set(key, known)
    const one = { atMs: nowMs }
    known.begun.add(one)
    return () => {
      if (!known.begun.delete(one)) return
      const endMs = this.#nowMs()
      known.usedMs = decayed(known, endMs) + endMs - one.atMs
      known.atMs = endMs
    }
  }
}

const decayed = ({ usedMs, atMs }: HostTime, nowMs: number): number => usedMs * 0.5 ** ((nowMs - atMs) / HALF_LIFE_MS)
