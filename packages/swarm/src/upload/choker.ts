import type { Peer } from '../peer/peer.ts'

export interface ChokeCandidate
  extends Pick<
    Peer,
    'id' | 'peerInterested' | 'amChoking' | 'trusted' | 'sentThisTurn' | 'turnSince' | 'uploadActiveAt'
  > {
  readonly down: { readonly bytesPerSecond: number }
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

const ROUND_MS = 10_000
const OPTIMISTIC_MS = 30_000
const QUOTA_BYTES = 64 * 1024 * 1024
/** A turn ends after this time if others wait, however slow the peer is. */
const TURN_MS = 60_000
/** A turn ends when the peer requests nothing for this long and others wait. */
const IDLE_MS = 10_000

/** Whether an unchoked peer keeps its slot while others wait: turns end by bytes, by time, and by requesting nothing. */
export function isInTurn(peer: ChokeCandidate, nowMs: number, quotaBytes: number): boolean {
  if (peer.amChoking || peer.sentThisTurn >= quotaBytes) return false
  return nowMs - peer.turnSince < TURN_MS && nowMs - Math.max(peer.turnSince, peer.uploadActiveAt) < IDLE_MS
}

/**
 * Decides which interested peers are unchoked. Pure. Peers in their turn stay, then come those that waited longest. While
 * downloading, trusted peers come first and take turns: all want the same bytes and pass them on. Of the others the best
 * senders come first, turns decide among equals, and one slot is optimistic.
 */
export function chooseUnchoked(peers: readonly ChokeCandidate[], options: ChokeOptions): ReadonlySet<number> {
  const chosen = new Set<number>()
  const interested = peers.filter((peer) => peer.peerInterested)
  const inTurn = new Set(interested.filter((peer) => isInTurn(peer, options.nowMs, options.quotaBytes)))
  interested.sort(
    (a, b) =>
      (options.fetching ? Number(b.trusted) - Number(a.trusted) : 0) ||
      (options.fetching && !a.trusted ? b.down.bytesPerSecond - a.down.bytesPerSecond : 0) ||
      Number(inTurn.has(b)) - Number(inTurn.has(a)) ||
      Number(b.amChoking) - Number(a.amChoking) ||
      a.turnSince - b.turnSince
  )
  const optimistic = options.fetching ? interested.find((peer) => peer.id === options.optimistic) : undefined
  for (const peer of optimistic === undefined ? interested : [optimistic, ...interested])
    if (chosen.size < options.slots) chosen.add(peer.id)
  return chosen
}

/** The next optimistic unchoke: the interested, choked peer that waited longest. */
export function chooseOptimistic(peers: readonly ChokeCandidate[]): number | undefined {
  let best: ChokeCandidate | undefined
  for (const peer of peers) {
    if (!peer.peerInterested || !peer.amChoking) continue
    if (best === undefined || peer.turnSince < best.turnSince) best = peer
  }
  return best?.id
}

/** Applies these decisions every ten seconds, and at once while slots are free or held without use. */
export class Choking {
  readonly #slots: number
  readonly #set: (peer: Peer, choke: boolean, nowMs: number) => void
  #optimistic: number | undefined
  #optimisticAt = -Infinity
  #roundAt = -Infinity

  /** `set` chokes or unchokes a peer; it is called only for a change. */
  constructor(slots: number, set: (peer: Peer, choke: boolean, nowMs: number) => void) {
    this.#slots = slots
    this.#set = set
  }

  slotsFree(peers: readonly Peer[]): boolean {
    let used = 0
    for (const peer of peers) if (!peer.amChoking) used += 1
    return used < this.#slots
  }

  interestChanged(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    for (const peer of peers) if (!peer.peerInterested) this.#set(peer, true, nowMs)
    if (this.slotsFree(peers)) this.run(peers, fetching, nowMs)
  }

  run(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    if (nowMs - this.#optimisticAt >= OPTIMISTIC_MS) {
      this.#optimistic = chooseOptimistic(peers)
      this.#optimisticAt = nowMs
    }
    const chosen = chooseUnchoked(peers, {
      nowMs,
      slots: this.#slots,
      fetching,
      quotaBytes: QUOTA_BYTES,
      optimistic: this.#optimistic
    })
    for (const peer of peers) this.#set(peer, !chosen.has(peer.id), nowMs)
  }

  tick(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    if (nowMs - this.#roundAt < ROUND_MS && (fetching || !this.#turnsAreOver(peers, nowMs))) return
    this.#roundAt = nowMs
    this.run(peers, fetching, nowMs)
  }

  /** True when a peer is waiting while another holds a slot beyond its turn. */
  #turnsAreOver(peers: readonly Peer[], nowMs: number): boolean {
    if (!peers.some((peer) => peer.peerInterested && peer.amChoking)) return false
    return peers.some((peer) => !peer.amChoking && !isInTurn(peer, nowMs, QUOTA_BYTES))
  }
}
