// Who of a neighbourhood brings a piece in from afar. Every node computes it for itself, and those who see each other come to the
// same answer: rendezvous hashing. Pure.

/** What stands for a node: 32 bits of its peer id. */
export function nodeHash(peerId: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of peerId) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

function scoreOf(node: number, piece: number): number {
  let mixed = node ^ Math.imul(piece + 1, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** Who let so many more pieces pass than it brought in is not waited for. */
const MISSES = 3

interface Neighbour {
  readonly hash: number
  missed: number
}

/**
 * The near nodes that lack pieces as well, as one node sees them. Each piece has an order of them; the first one brings it in, and the
 * others wait their turn. Who lets turns pass loses them, so that a node that is stuck, or only pretends, holds nobody up for long.
 */
export class Neighbourhood {
  readonly #own: number
  readonly #others = new Map<number, Neighbour>()

  /** @param own `nodeHash` of this node */
  constructor(own: number) {
    this.#own = own
  }

  /** A near node that lacks pieces is there. */
  joined(id: number, hash: number): void {
    if (!this.#others.has(id)) this.#others.set(id, { hash, missed: 0 })
  }

  /** It left, is not near, or lacks nothing. */
  gone(id: number): void {
    this.#others.delete(id)
  }

  /**
   * Whether the piece is for this node to bring in.
   *
   * @param rank so many nodes may come before: with 1, those pieces count as well whose first node did not bring them
   */
  isMine(piece: number, rank = 0): boolean {
    const score = scoreOf(this.#own, piece)
    let before = 0
    for (const { hash, missed } of this.#others.values()) {
      if (missed < MISSES && scoreOf(hash, piece) < score) before += 1
      if (before > rank) return false
    }
    return true
  }

  /** This node begins to bring the piece in; it has waited for those that come before. */
  took(piece: number): void {
    const score = scoreOf(this.#own, piece)
    for (const other of this.#others.values()) if (scoreOf(other.hash, piece) < score) other.missed += 1
  }

  /** A near node has a piece that no near node had. */
  brought(id: number): void {
    const other = this.#others.get(id)
    if (other !== undefined && other.missed > 0) other.missed -= 1
  }
}
