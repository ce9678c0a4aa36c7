import type { PieceTree } from '@svc/metainfo'
import { TokenBucket } from './token-bucket.ts'

/** Pair hashes per second that strangers may cause on this thread: measured at 0.5 µs each, a twentieth of a core. */
const HASHES_PER_SECOND = 100_000
/** Hash trees of all torrents together: 64 bytes for each piece. */
const TREE_BYTES = 16 * 1024 * 1024

/**
 * What answering hash requests may cost an engine, whoever asks: one answer is made at a time, so many pair hashes a second
 * are computed, so many bytes of trees are kept.
 * Invariant: `#bytes` is the sum over the trees kept; a single tree above the budget is kept alone.
 */
export class HashWork {
  /** Least recently used first. */
  readonly #trees = new Map<string, PieceTree>()
  readonly #hashes = new TokenBucket(HASHES_PER_SECOND, performance.now())
  #bytes = 0
  #line: Promise<unknown> = Promise.resolve()

  /** Runs `work` when all before it are done. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#line.then(work)
    this.#line = turn.catch(() => undefined)
    return turn
  }

  /** Waits until so many hashes may be computed. */
  async afford(hashes: number): Promise<void> {
    const waitMs = this.#hashes.waitMs(performance.now())
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
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

  /** The torrent is gone: its keys begin with this. */
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
