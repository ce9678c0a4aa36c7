/** Requests that a peer may refuse one after the other before it is left alone for a while. */
const MAX_IN_A_ROW = 64
const FIRST_PAUSE_MS = 1_000
const MAX_PAUSE_MS = 60_000

interface Refusals {
  inARow: number
  pauseMs: number
  pausedUntilMs: number
}

/**
 * Peers that unchoke us and refuse what they say they have: their disk fails, or they want to keep us busy, as fast as
 * messages travel. After 64 refusals without a block between, a peer is asked nothing for a second, and for twice as long
 * each further time, up to a minute.
 */
export class RefusingPeers {
  readonly #peers = new Map<number, Refusals>()

  refused(peerId: number, nowMs: number): void {
    const refusals = this.#peers.get(peerId) ?? { inARow: 0, pauseMs: FIRST_PAUSE_MS, pausedUntilMs: 0 }
    this.#peers.set(peerId, refusals)
    refusals.inARow += 1
    if (refusals.inARow < MAX_IN_A_ROW) return
    refusals.inARow = 0
    refusals.pausedUntilMs = nowMs + refusals.pauseMs
    refusals.pauseMs = Math.min(MAX_PAUSE_MS, 2 * refusals.pauseMs)
  }

  /** The peer sent a block, or left. */
  forget(peerId: number): void {
    this.#peers.delete(peerId)
  }

  isPaused(peerId: number, nowMs: number): boolean {
    const refusals = this.#peers.get(peerId)
    return refusals !== undefined && nowMs < refusals.pausedUntilMs
  }
}
