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

/**
 * Whether the piece is for `own` to bring in, and not for one of the near nodes that lack pieces as well.
 *
 * @param rank so many nodes may come before: with 1, those count as well whose it would be if the first did not bring it
 */
export function isResponsible(own: number, others: readonly number[], piece: number, rank = 0): boolean {
  const score = scoreOf(own, piece)
  let before = 0
  for (const other of others) {
    if (scoreOf(other, piece) < score) before += 1
    if (before > rank) return false
  }
  return true
}
