import type { Clock } from '@svc/internal-clock'
import { TokenBucket } from '@svc/internal-net'
import type { PieceTree } from '@svc/metainfo'
import { LRUCache } from 'lru-cache'

/** Pair hashes on this thread that peers can cause: at 0.5 µs each (measured), a twentieth of a core. */
const HASHES_PER_SECOND = 100_000
/** Memory for hash trees of all torrents together: 64 bytes per piece. */
const TREE_BYTES = 16 * 1024 * 1024

/** Limits what hash requests cost an engine: answers at a time (one), pair hashes per second, memory for trees. */
export class HashWork {
  /** Of all torrents. A tree that is larger than the limit is kept alone. */
  readonly trees = new LRUCache<string, PieceTree>({
    maxSize: TREE_BYTES,
    sizeCalculation: ({ memoryBytes }) => Math.min(memoryBytes, TREE_BYTES)
  })
  readonly #clock: Clock
  readonly #hashes: TokenBucket
  #line: Promise<unknown> = Promise.resolve()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#hashes = new TokenBucket(HASHES_PER_SECOND, clock.monotonic())
  }

  /** Runs `work` after all earlier calls have finished. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#line.then(work)
    this.#line = turn.catch(() => undefined)
    return turn
  }

  /** Waits until this many hashes may be computed. */
  async afford(hashes: number): Promise<void> {
    const waitMs = this.#hashes.waitMs(this.#clock.monotonic())
    if (waitMs > 0) await this.#clock.sleep(waitMs)
    this.#hashes.spend(hashes)
  }

  /** The torrent was removed: its keys start with this. */
  forget(prefix: string): void {
    for (const key of [...this.trees.keys()]) if (key.startsWith(prefix)) this.trees.delete(key)
  }
}
