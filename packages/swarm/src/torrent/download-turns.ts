import type { Clock, Timer } from '@svc/internal-clock'
import { type DownloadLimit, TURN_BYTES } from '@svc/internal-net'

interface PeerTurn {
  /** That of the limit. */
  ticket: number
  /** What may still be requested before the turn has to be paid for. */
  leftBytes: number
  timer?: Timer | undefined
}

/** How much each peer may be asked for now under the limit of downloads. Invariant: a timer runs only for a peer that waits. */
export class DownloadTurns {
  readonly #clock: Clock
  readonly #limit: DownloadLimit | undefined
  readonly #turns = new Map<number, PeerTurn>()

  constructor(clock: Clock, limit: DownloadLimit | undefined) {
    this.#clock = clock
    this.#limit = limit
  }

  /** Bytes; 0: none now, and `again` is called when it is the peer's turn. */
  leftFor(peerId: number, again: () => void): number {
    if (this.#limit?.limited !== true) return Number.POSITIVE_INFINITY
    const turn = this.#turns.get(peerId) ?? { ticket: 0, leftBytes: TURN_BYTES }
    this.#turns.set(peerId, turn)
    if (turn.leftBytes > 0) return turn.leftBytes
    const waitMs = this.#limit.waitMs(turn.ticket)
    if (waitMs === 0) return (turn.leftBytes = TURN_BYTES)
    turn.timer ??= this.#clock.after(waitMs, () => {
      turn.timer = undefined
      again()
    })
    return 0
  }

  took(peerId: number, bytes: number): void {
    const turn = this.#turns.get(peerId)
    if (turn === undefined || this.#limit === undefined) return
    turn.leftBytes -= bytes
    turn.ticket = this.#limit.take(bytes)
  }

  leave(peerId: number): void {
    this.#turns.get(peerId)?.timer?.cancel()
    this.#turns.delete(peerId)
  }

  close(): void {
    for (const peerId of [...this.#turns.keys()]) this.leave(peerId)
  }
}
