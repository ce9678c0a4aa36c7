import type { Peer } from '../peer/peer.ts'
import { type ChokeCandidate, chooseOptimistic, chooseUnchoked, isInTurn } from '../upload/choker.ts'

const ROUND_MS = 10_000
const OPTIMISTIC_MS = 30_000
const QUOTA_BYTES = 64 * 1024 * 1024

const candidate = (peer: Peer): ChokeCandidate => ({
  id: peer.id,
  interested: peer.peerInterested,
  unchoked: !peer.amChoking,
  trusted: peer.trusted,
  downloadRate: peer.down.bytesPerSecond,
  sentThisTurn: peer.sentThisTurn,
  turnSince: peer.turnSince,
  uploadActiveAt: peer.uploadActiveAt
})

/** Applies the choker's decisions every ten seconds, and at once while slots are free or held to no purpose. */
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

  /** The interest of some of them in us changed. */
  interestChanged(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    for (const peer of peers) if (!peer.peerInterested) this.#set(peer, true, nowMs)
    if (this.slotsFree(peers)) this.run(peers, fetching, nowMs)
  }

  run(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    const candidates = peers.map(candidate)
    if (nowMs - this.#optimisticAt >= OPTIMISTIC_MS) {
      this.#optimistic = chooseOptimistic(candidates)
      this.#optimisticAt = nowMs
    }
    const chosen = chooseUnchoked(candidates, {
      nowMs,
      slots: this.#slots,
      fetching,
      quotaBytes: QUOTA_BYTES,
      optimistic: this.#optimistic
    })
    for (const peer of peers) this.#set(peer, !chosen.has(peer.id), nowMs)
  }

  /** About once a second. */
  tick(peers: readonly Peer[], fetching: boolean, nowMs: number): void {
    if (nowMs - this.#roundAt < ROUND_MS && (fetching || !this.#turnsAreOver(peers, nowMs))) return
    this.#roundAt = nowMs
    this.run(peers, fetching, nowMs)
  }

  /** True when a peer is waiting while another holds a slot beyond its turn. */
  #turnsAreOver(peers: readonly Peer[], nowMs: number): boolean {
    if (!peers.some((peer) => peer.peerInterested && peer.amChoking)) return false
    return peers.some((peer) => !peer.amChoking && !isInTurn(candidate(peer), nowMs, QUOTA_BYTES))
  }
}
