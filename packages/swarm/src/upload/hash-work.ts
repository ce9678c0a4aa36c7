import type { Clock } from '@svc/internal-clock'
import { TokenBucket } from '@svc/internal-net'
import type { PieceTree } from '@svc/metainfo'

/**
 * Limit of pair hashes per second on this thread that peers can cause: at 0.5 µs each (measured), a twentieth of a
 * core.
 */
const HASHES_PER_SECOND = 100_000
/** Memory for hash trees of all torrents together: 64 bytes per piece. */
const TREE_BYTES = 16 * 1024 * 1024

/**
 * Limits what hash requests can cost an engine: it prepares one answer at a time, computes a limited number of pair
 * hashes per second, and keeps a limited amount of trees.
 *
 * Invariant: `#bytes` is the sum of the trees kept; a single tree larger than the budget is kept alone.
 */
export class HashWork {
  /** Least recently used first. */
  readonly #trees = new Map<string, PieceTree>()
  readonly #clock: Clock
  readonly #hashes: TokenBucket
  #bytes = 0
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

  tree(key: string): PieceTree | undefined {
    const tree = this.#trees.get(key)
    if (tree === undefined) return undefined
    this.#trees.delete(key)
    this.#trees.set(key, tree)
    return tree
  }

  keep(key: string, tree: PieceTree): void {
    this.#trees.set(key, tree)
    this.#bytes += tree.memoryBytes
    for (const [oldest, old] of this.#trees) {
      if (this.#bytes <= TREE_BYTES || oldest === key) break
      this.#trees.delete(oldest)
      this.#bytes -= old.memoryBytes
    }
  }

  /** The torrent was removed: its keys start with this. */
  forget(prefix: string): void {
    for (const [key, tree] of this.#trees) {
      if (!key.startsWith(prefix)) continue
      this.#trees.delete(key)
      this.#bytes -= tree.memoryBytes
    }
  }

  checkInvariants(): void {
    let bytes = 0
    for (const tree of this.#trees.values()) bytes += tree.memoryBytes
    if (bytes !== this.#bytes) throw new Error('hash trees are miscounted')
    if (bytes > TREE_BYTES && this.#trees.size > 1) throw new Error('too many hash trees are kept')
  }
}
