/** The choker's input about a peer. Rates are in bytes per second, times in milliseconds of one monotonic clock. */
export interface ChokeCandidate {
  readonly id: number
  readonly interested: boolean
  readonly unchoked: boolean
  /** Of our own fleet: served in turn, whatever it sends. */
  readonly trusted?: boolean
  /** What the peer sends us; it counts while we download. */
  readonly downloadRate: number
  /** Bytes sent to it since it was last unchoked. */
  readonly sentThisTurn: number
  /** When it was last unchoked, or choked. */
  readonly turnSince: number
  /** When it last requested a block or was sent one. */
  readonly uploadActiveAt: number
}

export interface ChokeOptions {
  readonly nowMs: number
  readonly slots: number
  /** True while the torrent is downloading: the best senders come first; otherwise peers take turns. */
  readonly fetching: boolean
  /** Bytes after which a turn ends if others wait. */
  readonly quotaBytes: number
  /** The current holder of the optimistic slot; the caller changes it every 30 s. */
  readonly optimistic: number | undefined
}

/** A turn ends after this time if others wait, however slow the peer is. */
const TURN_MS = 60_000
/** A turn ends when the peer requests nothing for this long and others wait. */
const IDLE_MS = 10_000

/**
 * Whether an unchoked peer keeps its slot while others wait: its turn ends by bytes, by time, and by requesting
 * nothing.
 */
export function isInTurn(peer: ChokeCandidate, nowMs: number, quotaBytes: number): boolean {
  if (!peer.unchoked || peer.sentThisTurn >= quotaBytes) return false
  return nowMs - peer.turnSince < TURN_MS && nowMs - Math.max(peer.turnSince, peer.uploadActiveAt) < IDLE_MS
}

/**
 * Decides who is unchoked. Pure. Peers in their turn stay, then come those that waited longest. While downloading,
 * trusted peers come first and take turns: all want the same bytes and pass them on. Of the others the best senders come
 * first, turns decide among equals, and one slot is optimistic. Never returns more than `slots` peers, or any that is
 * not interested.
 */
export function chooseUnchoked(peers: readonly ChokeCandidate[], options: ChokeOptions): ReadonlySet<number> {
  const chosen = new Set<number>()
  const interested = peers.filter((peer) => peer.interested)
  if (interested.length <= options.slots) {
    for (const peer of interested) chosen.add(peer.id)
    return chosen
  }
  const inTurn = new Set(interested.filter((peer) => isInTurn(peer, options.nowMs, options.quotaBytes)))
  interested.sort(
    (a, b) =>
      (options.fetching ? Number(b.trusted === true) - Number(a.trusted === true) : 0) ||
      (options.fetching && a.trusted !== true ? b.downloadRate - a.downloadRate : 0) ||
      Number(inTurn.has(b)) - Number(inTurn.has(a)) ||
      Number(a.unchoked) - Number(b.unchoked) ||
      a.turnSince - b.turnSince
  )
  if (options.fetching && options.optimistic !== undefined) {
    if (interested.some((peer) => peer.id === options.optimistic)) chosen.add(options.optimistic)
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
