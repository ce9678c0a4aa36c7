/** What the choker knows of a peer. Rates in bytes per second. */
export interface ChokeCandidate {
  readonly id: number
  readonly interested: boolean
  readonly unchoked: boolean
  /** What the peer gives us: what counts while we fetch. */
  readonly downloadRate: number
  /** Bytes sent to it since it was last unchoked. */
  readonly sentThisTurn: number
  /** When it was last unchoked, or choked; milliseconds of any monotonic clock. */
  readonly turnSince: number
}

export interface ChokeOptions {
  readonly slots: number
  /** True while the torrent is fetched: best givers first; otherwise turns by quota. */
  readonly fetching: boolean
  /** Bytes after which a seed passes the turn on when others wait. */
  readonly quotaBytes: number
  /** Whom the optimistic slot belongs to now; the caller changes it every 30 s. */
  readonly optimistic: number | undefined
}

/**
 * Decides who is unchoked. Pure. Seeding: round robin by quota, who has not used up its turn goes first, then who waited
 * longest. Fetching: the best givers, and one optimistic. Never more than `slots`, never one who is not interested.
 */
export function chooseUnchoked(peers: readonly ChokeCandidate[], options: ChokeOptions): ReadonlySet<number> {
  const chosen = new Set<number>()
  const interested = peers.filter((peer) => peer.interested)
  if (interested.length <= options.slots) {
    for (const peer of interested) chosen.add(peer.id)
    return chosen
  }
  const inTurn = (peer: ChokeCandidate): boolean => peer.unchoked && peer.sentThisTurn < options.quotaBytes
  if (options.fetching) {
    interested.sort((a, b) => b.downloadRate - a.downloadRate || a.turnSince - b.turnSince)
    if (options.optimistic !== undefined && interested.some((peer) => peer.id === options.optimistic)) {
      chosen.add(options.optimistic)
    }
  } else {
    interested.sort(
      (a, b) =>
        Number(inTurn(b)) - Number(inTurn(a)) || Number(a.unchoked) - Number(b.unchoked) || a.turnSince - b.turnSince
    )
  }
  for (const peer of interested) {
    if (chosen.size >= options.slots) break
    chosen.add(peer.id)
  }
  return chosen
}

/** The next optimistic unchoke: the interested, choked peer that waited longest. */
export function chooseOptimistic(peers: readonly ChokeCandidate[]): number | undefined {
  let best: ChokeCandidate | undefined
  for (const peer of peers) {
    if (!peer.interested || peer.unchoked) continue
    if (best === undefined || peer.turnSince < best.turnSince) best = peer
  }
  return best?.id
}
